//! Steps of a run: events in time, calls in tasks of their own, calls that end the run.
#![expect(clippy::wildcard_enum_match_arm, reason = "any other event fails the test")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use serde_json::json;
use toolgate::transport::HttpResponse;
use toolgate::{
    Call, Cancel, Context, Decision, Error, Event, EventStream, Execution, Request, Tool,
    ToolError, Toolset, tool,
};
use toolgate_sim::Script;

use crate::support::{clean, client};
use crate::tools::{clock, weather};

/// Number of calls that have begun.
struct Begun(Arc<AtomicU32>);

/// Counts.
#[tool]
async fn count(context: &Context) -> u32 {
    context.state::<Begun>().map_or(0, |it| it.0.fetch_add(1, Ordering::SeqCst))
}

#[tokio::test]
async fn d3_an_event_is_delivered_before_the_next_step() {
    let script = Script::new().call("count", json!({})).finish().text("Done.");
    let (client, sim) = client(script);
    let begun = Arc::new(AtomicU32::new(0));
    let tools = Toolset::new().with::<count>().state(Begun(Arc::clone(&begun)));
    let mut stream = client.stream(Request::new("Go.").tools(tools));
    let mut seen = Vec::new();
    while let Some(event) = stream.next().await {
        let state = (sim.counters().requests, begun.load(Ordering::SeqCst));
        let event = event.unwrap();
        let want = match &event {
            Event::Round { round: 1, .. } => (0, 0),
            Event::ToolStarted(_) => (1, 0),
            Event::ToolFinished { .. } | Event::Round { .. } => (1, 1),
            Event::Text(_) | Event::Finished(_) => (2, 1),
            other => panic!("{other:?}"),
        };
        assert_eq!(state, want, "{event:?}");
        seen.push(serde_json::to_value(&event).unwrap()["type"].clone());
    }
    let text = seen.iter().filter(|kind| **kind == "text").count();
    assert!(text >= 1);
    seen.retain(|kind| *kind != "text");
    assert_eq!(seen, ["round", "tool_started", "tool_finished", "round", "finished"]);
    clean(&sim, 2);
}

#[tokio::test]
async fn d2_calls_that_the_loop_answers_are_events() {
    let script = Script::new()
        .call("wether", json!({}))
        .call("weather", json!({"town": "Oslo"}))
        .call("clock", json!({}))
        .finish()
        .text("Done.");
    for streamed in [false, true] {
        let (client, _sim) = client(script.clone());
        let events: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&events);
        let request = Request::new("Go.")
            .tools(Toolset::new().with::<weather>().with::<clock>())
            .observe(move |event| match event {
                Event::CallRefused { call, error: ToolError::NotFound { known, .. } } => {
                    log.lock().unwrap().push(format!("{} is none of {known:?}", call.name()));
                }
                Event::CallRefused { call, error: ToolError::Arguments(_) } => {
                    log.lock().unwrap().push(format!("{} is called wrongly", call.name()));
                }
                Event::ToolStarted(call) => {
                    log.lock().unwrap().push(format!("{} runs", call.name()))
                }
                _ => {}
            });
        match streamed {
            true => client.stream(request).finish().await.unwrap(),
            false => client.generate(request).await.unwrap(),
        };
        assert_eq!(
            *events.lock().unwrap(),
            [
                "wether is none of [\"weather\", \"clock\"]",
                "weather is called wrongly",
                "clock runs"
            ]
        );
    }
}

/// Channel from `release` to `block`.
struct Gate(mpsc::SyncSender<()>, Mutex<mpsc::Receiver<()>>);

/// Blocks its thread until the other tool has run.
#[tool]
async fn block(context: &Context) -> bool {
    let gate = context.state::<Gate>().unwrap();
    let received = gate.1.lock().unwrap().recv_timeout(Duration::from_secs(60));
    received.is_ok()
}

/// Lets the other tool go on.
#[tool]
async fn release(context: &Context) -> bool {
    context.state::<Gate>().unwrap().0.send(()).is_ok()
}

/// In one task, the blocked call would keep the other one from running.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn d5_a_call_that_blocks_its_thread_does_not_stop_the_others() {
    for names in [["block", "release"], ["release", "block"]] {
        let (sender, receiver) = mpsc::sync_channel(1);
        let gate = Gate(sender, Mutex::new(receiver));
        let tools = Toolset::new().with::<block>().with::<release>().state(gate);
        let calls = names.map(|name| Call::new(name, name, &json!({})));
        for executed in tools.execute_all(calls, Execution::default()).await {
            assert_eq!(
                executed.result.unwrap().to_value(),
                json!(true),
                "{}",
                executed.call.name()
            );
        }
    }
}

/// Signals when it is dropped.
struct Dropped(tokio::sync::mpsc::UnboundedSender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn d5_dropping_the_run_aborts_its_calls() {
    let (client, _sim) = client(Script::new().call("hang", json!({})));
    let (dropped, mut drops) = tokio::sync::mpsc::unbounded_channel();
    let (started, mut starts) = tokio::sync::mpsc::unbounded_channel();
    let declaration = json!({"name": "hang", "description": "Hangs."});
    let hang = Tool::from_json(&declaration, move |_, _| {
        let (dropped, started) = (Dropped(dropped.clone()), started.clone());
        async move {
            let _dropped = dropped;
            started.send(()).map_err(|error| error.to_string())?;
            std::future::pending::<Result<String, String>>().await
        }
    });
    let request = Request::new("Go.").tools(Toolset::new().tool(hang.unwrap()));
    let run = tokio::spawn(async move { client.generate(request).await });
    starts.recv().await.unwrap();
    run.abort();
    drops.recv().await.unwrap();
}

#[derive(Debug, thiserror::Error)]
#[error("the disk is gone: {0}")]
struct DiskError(u32);

/// Ends the run.
#[tool]
async fn save(number: u32) -> Result<String, ToolError> {
    match number {
        0 => Err("zero is not saved".into()),
        _ => Err(ToolError::abort(DiskError(number))),
    }
}

#[tokio::test]
async fn d6_a_tool_can_end_the_run() {
    let script = Script::new()
        .call("save", json!({"number": 0}))
        .finish()
        .call("clock", json!({}))
        .call("save", json!({"number": 7}))
        .finish();
    for streamed in [false, true] {
        let (client, sim) = client(script.clone());
        let request = Request::new("Go.").tools(Toolset::new().with::<save>().with::<clock>());
        let ended = match streamed {
            true => client.stream(request).finish().await,
            false => client.generate(request).await,
        };
        let Err(Error::Tool { call, source, history }) = ended else { panic!("{ended:?}") };
        assert_eq!(call.name(), "save");
        assert_eq!(source.downcast_ref::<DiskError>().unwrap().0, 7);
        // An ordinary error of the tool went to the model.
        assert_eq!(crate::history::brief(&history), ["model: call save", "user: error save"]);
        assert_eq!(sim.counters().requests, 2);
        sim.assert_script_done();
    }
}

#[tokio::test]
async fn d6_a_closure_and_an_approval_can_end_the_run() {
    let script = Script::new().call("clock", json!({})).finish();
    let (client, _sim) = client(script.clone());
    let declaration = json!({"name": "clock", "description": "The time."});
    let broken = Tool::from_json(&declaration, |_, _| async {
        Err::<String, _>(ToolError::abort("no clock"))
    });
    let request = Request::new("Go.").tools(Toolset::new().tool(broken.unwrap()));
    let error = client.generate(request).await.unwrap_err();
    assert_eq!(error.to_string(), "the call of `clock` ended the run: no clock");

    let (client, sim) = crate::support::client(script);
    let request = Request::new("Go.")
        .tools(Toolset::new().with::<clock>())
        .approve(|_| async { Decision::Abort("out of office".to_owned()) });
    let error = client.generate(request).await.unwrap_err();
    assert_eq!(error.to_string(), "the call of `clock` ended the run: out of office");
    assert!(!error.is_retryable());
    assert_eq!(sim.counters().requests, 1);
}

/// Each of two approvals waits for the other one.
#[tokio::test]
async fn d12_approvals_are_concurrent() {
    let script =
        Script::new().call("clock", json!({})).call("clock", json!({})).finish().text("Done.");
    let (client, sim) = client(script);
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let request = Request::new("Go.").tools(Toolset::new().with::<clock>()).approve(move |_| {
        let both = Arc::clone(&both);
        async move {
            both.wait().await;
            Decision::Allow
        }
    });
    assert_eq!(client.generate(request).await.unwrap().text(), "Done.");
    clean(&sim, 2);
}

#[tokio::test]
async fn d7_calls_are_executed_with_their_ids() {
    let tools = Toolset::new().with::<weather>().with::<clock>();
    let calls = [
        Call::new("a", "weather", &json!({"city": "Oslo"})),
        Call::new("b", "nothing", &json!({})),
        Call::new("c", "clock", &json!({})),
    ];
    for sequential in [false, true] {
        let options = Execution { sequential, ..Execution::default() };
        let executed = tools.execute_all(calls.clone(), options).await;
        let ids: Vec<_> = executed.iter().map(|it| it.call_id()).collect();
        assert_eq!(ids, ["a", "b", "c"]);
        assert_eq!(executed[0].result.as_ref().unwrap().to_value(), json!("22 °C in Oslo"));
        assert!(matches!(executed[1].result, Err(ToolError::NotFound { .. })));
        let result = format!("{:?}", executed[1].to_result());
        assert!(result.contains("function not found"), "{result}");
    }
    let cancel = Cancel::new();
    cancel.cancel();
    let options = Execution { cancel, ..Execution::default() };
    for executed in tools.execute_all(calls, options).await {
        assert!(executed.result.is_err(), "{executed:?}");
    }
}

/// Numbers of the calls, when they begin and when they end.
struct Order(Arc<Mutex<Vec<u32>>>);

/// Records that it begins and ends.
#[tool]
async fn record(number: u32, context: &Context) -> u32 {
    let order = context.state::<Order>().unwrap();
    order.0.lock().unwrap().push(number);
    tokio::task::yield_now().await;
    order.0.lock().unwrap().push(number);
    number
}

#[tokio::test]
async fn d7_sequential_calls_do_not_overlap() {
    // Concurrent calls end in any order.
    for (sequential, want) in [(true, &[1, 1, 2, 2, 3, 3][..]), (false, &[1, 2, 3])] {
        let order: Arc<Mutex<Vec<u32>>> = Arc::default();
        let tools = Toolset::new().with::<record>().state(Order(Arc::clone(&order)));
        let calls = [1, 2, 3].map(|number| Call::new("", "record", &json!({"number": number})));
        let options = Execution { sequential, ..Execution::default() };
        assert_eq!(tools.execute_all(calls, options).await.len(), 3);
        assert!(order.lock().unwrap().starts_with(want), "{order:?}");
    }
}

#[tokio::test]
async fn r65_any_byte_stream_becomes_the_event_stream() {
    let script =
        Script::new().text("Let me see.").call("weather", json!({"city": "Oslo"})).finish();
    let (client, sim) = client(script);
    let request = Request::new("Go.").tools(Toolset::new().tool(Tool::declared_json(
        &json!({"name": "weather", "parameters": {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}}}),
    ).unwrap()));
    let preview = client.preview(request.clone()).unwrap();
    // The program sends the request itself.
    let url = preview.url.replace(":generateContent", ":streamGenerateContent?alt=sse");
    let sent = http::Request::post(url)
        .header("x-goog-api-key", "a key")
        .body(bytes::Bytes::from(preview.body.to_string()))
        .unwrap();
    let plan = sim.plan(&sent);
    assert_eq!(plan.status, 200);
    let body = plan.bytes();
    for size in [1, 7, body.len()] {
        let pieces: Vec<Result<Vec<u8>, std::io::Error>> =
            body.chunks(size).map(|piece| Ok(piece.to_vec())).collect();
        let mut stream =
            EventStream::from_bytes("gemini-3.6-flash", futures_util::stream::iter(pieces));
        let (mut text, mut calls) = (String::new(), Vec::new());
        while let Some(event) = stream.next().await {
            match event.unwrap() {
                Event::Text(more) => text.push_str(&more),
                Event::Call { call, .. } => calls.push(call),
                Event::Finished(response) => assert_eq!(response.calls(), calls),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(text, "Let me see.");
        assert_eq!(calls[0].arguments(), json!({"city": "Oslo"}));
    }
    let response = HttpResponse::whole(200, body);
    let answer = EventStream::from_response("gemini-3.6-flash", response).finish().await.unwrap();
    assert_eq!(answer.calls().len(), 1);
    let refused =
        HttpResponse::whole(429, r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}"#);
    let error = EventStream::from_response("m", refused).finish().await.unwrap_err();
    assert_eq!(error.kind(), Some(toolgate::FailureKind::RateLimited));
    let cut = futures_util::stream::iter([Err::<Vec<u8>, _>("the wire broke")]);
    let error = EventStream::from_bytes("m", cut).finish().await.unwrap_err();
    assert_eq!(error.to_string(), "connection lost: the wire broke");
}
