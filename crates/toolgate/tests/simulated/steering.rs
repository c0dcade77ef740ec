//! Forced calls, approval, cancellation, events.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use toolgate::{
    Cancel, Context, Decision, Error, Event, FunctionTool as _, Request, ToolError, Toolset, tool,
};
use toolgate_sim::Script;

use crate::support::{clean, client, last};
use crate::tools::{clock, slow, weather};

fn mode(body: &serde_json::Value) -> serde_json::Value {
    body["toolConfig"]["functionCallingConfig"].clone()
}

#[tokio::test]
async fn r021_a_forced_call_applies_to_the_first_round_only() {
    let script = Script::new().call("clock", json!({})).finish().text("Noon.");
    let (client, sim) = client(script.clone().finish().text(""));
    let tools = Toolset::new().with::<clock>().with::<weather>();
    let request = Request::new("Go.").tools(tools.clone()).must_call::<&str>([]);
    assert_eq!(client.generate(request).await.unwrap().text(), "Noon.");
    assert_eq!(mode(&sim.requests()[0].json())["mode"], "ANY");
    assert_ne!(mode(&last(&sim))["mode"], "ANY");
    clean(&sim, 2);

    let (client, sim) = crate::support::client(script);
    let request = Request::new("Go.").tools(tools).must_call(["clock"]);
    client.generate(request).await.unwrap();
    let first = mode(&sim.requests()[0].json());
    assert_eq!(first, json!({"mode": "ANY", "allowedFunctionNames": ["clock"]}));
    assert_ne!(mode(&last(&sim))["mode"], "ANY");
    clean(&sim, 2);
}

#[tokio::test]
async fn approval_allows_denies_and_changes() {
    let script = Script::new()
        .call("weather", json!({"city": "Oslo"}))
        .call("clock", json!({}))
        .call("weather", json!({"city": "Rome"}))
        .finish()
        .text("Done.");
    let (client, sim) = client(script);
    let tools = Toolset::new().with::<weather>().with::<clock>();
    let request = Request::new("Go.").tools(tools).approve(|call| async move {
        match (call.name(), call.arguments()["city"].as_str()) {
            ("clock", _) => Decision::Deny("time is private".to_owned()),
            (_, Some("Rome")) => Decision::Change(json!({"city": "Bern"})),
            _ => Decision::Allow,
        }
    });
    client.generate(request).await.unwrap();
    clean(&sim, 2);
    let contents = last(&sim)["contents"].clone();
    let results = contents[2]["parts"].as_array().unwrap();
    let said: Vec<_> =
        results.iter().map(|it| it["functionResponse"]["response"].clone()).collect();
    assert_eq!(
        said,
        [
            json!({"result": "22 °C in Oslo"}),
            json!({"error": "the call was denied: time is private"}),
            json!({"result": "22 °C in Bern"}),
        ]
    );
    // The model's call keeps its arguments in the history.
    assert_eq!(contents[1]["parts"][2]["functionCall"]["args"], json!({"city": "Rome"}));
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn push(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Waits to be cancelled.
#[tool]
async fn wait(context: &Context) -> String {
    if let Some(log) = context.state::<Log>() {
        log.push("started");
    }
    context.cancel().cancelled().await;
    "never seen".to_owned()
}

#[tokio::test(start_paused = true)]
async fn cancelling_reaches_the_tools_and_ends_the_request() {
    let script = Script::new().call("clock", json!({})).finish().call("wait", json!({})).finish();
    for streamed in [false, true] {
        let (client, sim) = client(script.clone());
        let (cancel, log) = (Cancel::new(), Log::default());
        let tools = Toolset::new().with::<clock>().with::<wait>().state(log.clone());
        let request = Request::new("Go.").tools(tools).cancel(cancel.clone());
        let asking = async {
            match streamed {
                true => client.stream(request).finish().await,
                false => client.generate(request).await,
            }
        };
        let (asked, ()) = tokio::join!(asking, async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cancel.cancel();
        });
        let Err(Error::Cancelled { history }) = asked else { panic!("{asked:?}") };
        assert_eq!(history.len(), 2);
        assert_eq!(log.lines(), ["started"]);
        assert_eq!(sim.counters().requests, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_a_running_request() {
    let script = Script::new().text("Hi.").pace(Duration::from_secs(60), Duration::ZERO);
    let (client, _sim) = client(script);
    let cancel = Cancel::new();
    let request = Request::new("Hi?").cancel(cancel.clone());
    let start = tokio::time::Instant::now();
    let (asked, ()) = tokio::join!(client.generate(request), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
    });
    assert!(matches!(asked, Err(Error::Cancelled { .. })));
    assert_eq!(start.elapsed(), Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_wait_for_a_shared_result() {
    let script = Script::new().call("slow", json!({"name": "tea"})).finish().text("Done.");
    let ((one, _first), (two, _second)) = (client(script.clone()), client(script));
    let tools = Toolset::new().tool(slow::tool().deterministic());
    let cancel = Cancel::new();
    let request = || Request::new("Go.").tools(tools.clone());
    let start = tokio::time::Instant::now();
    let waiting = async {
        // The first call has started and takes ten seconds.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let asked = two.generate(request().cancel(cancel.clone())).await;
        assert!(matches!(asked, Err(Error::Cancelled { .. })));
        assert_eq!(start.elapsed(), Duration::from_secs(3));
    };
    let (asked, (), ()) = tokio::join!(one.generate(request()), waiting, async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        cancel.cancel();
    });
    assert_eq!(asked.unwrap().text(), "Done.");
    assert_eq!(start.elapsed(), Duration::from_secs(10));
}

/// Short form of an event.
#[expect(clippy::wildcard_enum_match_arm, reason = "other events are not compared")]
pub(crate) fn brief(event: &Event) -> String {
    match event {
        Event::Round { round, last } => {
            format!("round {round}{}", if *last { " (last)" } else { "" })
        }
        Event::Retry { failure, .. } => format!("retry: {:?}", failure.kind),
        Event::Text(text) => format!("text {text:?}"),
        Event::Thought(text) => format!("thought {text:?}"),
        Event::Call { index, call } => format!("call {index} {}", call.name()),
        Event::ToolStarted(call) => format!("start {}({})", call.name(), call.arguments_json()),
        Event::ToolFinished { call, result, .. } => match result {
            Ok(output) => format!("end {} {}", call.name(), output.to_value()),
            Err(error) => format!("end {} error {error}", call.name()),
        },
        Event::Server { kind, .. } => format!("server {kind}"),
        Event::Finished(response) => format!("finished {:?}", response.text()),
        other => format!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn every_step_is_an_event() {
    let script = Script::new()
        .call("slow", json!({"name": "a"}))
        .call("weather", json!({"city": "Atlantis"}))
        .finish()
        .text("Done.");
    let (client, _sim) = client(script);
    let log = Log::default();
    let (seen, tools) = (log.clone(), Toolset::new().with::<slow>().with::<weather>());
    let request = Request::new("Go.").tools(tools).observe(move |event| seen.push(brief(event)));
    client.generate(request).await.unwrap();
    assert_eq!(
        log.lines(),
        [
            "round 1",
            "start slow({\"name\":\"a\"})",
            "start weather({\"city\":\"Atlantis\"})",
            "end weather error it is under water",
            "end slow \"a\"",
            "round 2",
            "text \"Done.\"",
        ]
    );
}

#[tokio::test]
async fn r056_arguments_are_logged_only_on_request() {
    use tracing_subscriber::fmt::MakeWriter;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;
        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(lines.clone())
        .with_max_level(tracing::Level::DEBUG)
        .with_ansi(false)
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let tools = Toolset::new().with::<weather>().timeout(Duration::from_millis(5)).with::<wait>();
    let city = json!({"city": "Secretville"});
    tools.call("weather", &city).await.unwrap();
    assert!(tools.call("wait", &json!({})).await.is_err());
    assert!(matches!(tools.call("gone", &city).await, Err(ToolError::NotFound { .. })));
    let text = || String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    for want in
        ["call starts", "success=true", "success=false", "function not found", "longer than 5ms"]
    {
        assert!(text().contains(want), "{want} is not in\n{}", text());
    }
    assert!(text().contains("tool=\"weather\"") || text().contains("tool=weather"), "{}", text());
    assert!(!text().contains("Secretville"), "{}", text());
    tools.log_arguments(true).call("weather", &city).await.unwrap();
    assert!(text().contains("Secretville"));
}
