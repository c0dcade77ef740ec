//! Execution of tools, in tokio's paused time.
#![expect(clippy::panic, reason = "tools that panic are the subject")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};
use toolgate::{Context, FunctionTool as _, Tool, ToolError, Toolset, tool, tools};

/// Sleeps.
#[tool]
async fn nap(seconds: u64) -> String {
    sleep(Duration::from_secs(seconds)).await;
    format!("slept {seconds}")
}

/// Panics.
#[tool]
async fn burst() -> String {
    panic!("no more room")
}

/// Panics, and is not async.
#[tool]
fn burst_blocking() -> String {
    panic!("no more {}", "air")
}

#[tokio::test(start_paused = true)]
async fn r053_the_default_timeout_is_thirty_seconds() {
    let tools = Toolset::new().with::<nap>();
    let start = Instant::now();
    let error = tools.call("nap", &json!({"seconds": 31})).await.unwrap_err();
    assert_eq!(error, ToolError::TimedOut(Duration::from_secs(30)));
    assert_eq!(start.elapsed(), Duration::from_secs(30));
    assert_eq!(error.to_string(), "the tool took longer than 30s and was given up");

    let tools = tools.timeout(Duration::from_secs(5));
    let error = tools.call("nap", &json!({"seconds": 6})).await.unwrap_err();
    assert_eq!(error, ToolError::TimedOut(Duration::from_secs(5)));

    let tools = Toolset::new().tool(nap::tool().timeout(Duration::from_secs(60)));
    assert!(tools.call("nap", &json!({"seconds": 59})).await.is_ok());
}

#[tokio::test]
async fn panics_are_errors() {
    let tools = Toolset::new().with::<burst>().with::<burst_blocking>();
    for (name, want) in [("burst", "no more room"), ("burst_blocking", "no more air")] {
        let error = tools.call(name, &json!({})).await.unwrap_err();
        assert_eq!(error, ToolError::Panicked(want.to_owned()));
    }
    let early = Tool::new("early", "Panics before it begins.", |(): (), _| {
        assert!(std::hint::black_box(false), "at once");
        std::future::ready(Ok::<_, String>(()))
    });
    let error = Toolset::new().tool(early).call("early", &json!(null)).await.unwrap_err();
    assert_eq!(error, ToolError::Panicked("at once".to_owned()));
}

#[tokio::test]
async fn r052_an_unknown_function_is_an_error_result() {
    let tools = Toolset::new().with::<nap>().with::<burst>();
    let error = tools.call("nup", &json!({})).await.unwrap_err();
    assert_eq!(error.to_string(), "function not found: `nup`; there is `nap`, `burst`");
    let error = Toolset::new().call("nup", &json!({})).await.unwrap_err();
    assert_eq!(error.to_string(), "function not found: `nup`; there is no tool at all");
}

#[test]
fn r051_r067_tools_are_listed_and_found() {
    let tools = Toolset::new().with::<nap>().with::<burst>();
    let names: Vec<_> = tools.tools().iter().map(Tool::name).collect();
    assert_eq!(names, ["nap", "burst"]);
    assert!(tools.contains("nap"));
    assert!(!tools.contains("nup"));
    assert!(Toolset::new().is_empty());
    assert!(!Toolset::new().google_search().is_empty());
}

#[test]
fn r057_debug_shows_names_and_time_only() {
    let secret = "hunter2".to_owned();
    let tool = Tool::new("login", "Logs in.", move |(): (), _| {
        let secret = secret.clone();
        async move { Ok::<_, String>(secret) }
    });
    let tools = Toolset::new().tool(tool).state("hunter3".to_owned());
    assert_eq!(format!("{tools:?}"), r#"Toolset { tools: ["login"], timeout: 30s, .. }"#);
}

#[test]
fn r050_toolsets_cross_threads() {
    fn crosses<T: Send + Sync + 'static>() {}
    crosses::<Toolset>();
    crosses::<Tool>();
    crosses::<Context>();
}

/// A tool that counts its runs.
fn counted(runs: &Arc<AtomicU32>) -> Tool {
    let runs = Arc::clone(runs);
    Tool::new("square", "Squares.", move |(number,): (u32,), _| {
        let runs = Arc::clone(&runs);
        async move {
            runs.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_secs(1)).await;
            number.checked_mul(number).ok_or("too large")
        }
    })
}

#[tokio::test(start_paused = true)]
async fn r166_deterministic_tools_run_once() {
    let runs = Arc::new(AtomicU32::new(0));
    let tools = Toolset::new().tool(counted(&runs).deterministic());
    let (three, four) = (json!([3]), json!([4]));
    // Concurrently, then later, on a clone.
    let (one, two, other) = tokio::join!(
        tools.call("square", &three),
        tools.call("square", &three),
        tools.call("square", &four)
    );
    assert_eq!(one.unwrap().to_value(), json!(9));
    assert_eq!(two.unwrap().to_value(), json!(9));
    assert_eq!(other.unwrap().to_value(), json!(16));
    assert_eq!(tools.clone().call("square", &three).await.unwrap().to_value(), json!(9));
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    // Errors are not cached.
    for _ in 0..2 {
        assert!(tools.call("square", &json!([100_000])).await.is_err());
    }
    assert_eq!(runs.load(Ordering::Relaxed), 4);

    let runs = Arc::new(AtomicU32::new(0));
    let tools = Toolset::new().tool(counted(&runs));
    for _ in 0..2 {
        assert!(tools.call("square", &three).await.is_ok());
    }
    assert_eq!(runs.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn r166_cached_results_belong_to_their_object_and_state() {
    struct User(&'static str);

    #[tools]
    impl User {
        /// Returns the name.
        #[tool(deterministic)]
        fn name(&self) -> &'static str {
            self.0
        }
    }

    /// Returns the name in the state.
    #[tool(deterministic)]
    fn state(context: &Context) -> &'static str {
        context.state::<User>().map_or("nobody", |user| user.0)
    }

    let usual = Toolset::new().with::<state>();
    for name in ["Ann", "Bob"] {
        let tools = usual.clone().provider(&Arc::new(User(name))).state(User(name));
        for tool in ["name", "state"] {
            assert_eq!(tools.call(tool, &json!({})).await.unwrap().to_value(), json!(name));
        }
    }
    assert_eq!(usual.call("state", &json!({})).await.unwrap().to_value(), json!("nobody"));
}

#[tokio::test(start_paused = true)]
async fn the_number_of_concurrent_calls_is_limited() {
    let tools = Toolset::new().with::<nap>().max_parallel(2);
    let start = Instant::now();
    let arguments = json!({"seconds": 20});
    let nap = || tools.call("nap", &arguments);
    let (a, b, c) = tokio::join!(nap(), nap(), nap());
    // The third waits twenty seconds for a permit and runs for twenty: waiting does not count.
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    assert_eq!(start.elapsed(), Duration::from_secs(40));
}

#[tokio::test(start_paused = true)]
async fn sequential_tools_never_overlap() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let tool = Tool::new("step", "A step.", move |(number,): (u32,), _| {
        let log = Arc::clone(&log);
        async move {
            log.lock().unwrap().push(format!("+{number}"));
            sleep(Duration::from_secs(10)).await;
            log.lock().unwrap().push(format!("-{number}"));
            Ok::<_, String>(())
        }
    });
    let tools = Toolset::new().tool(tool.sequential());
    let (one, two) = (json!([1]), json!([2]));
    let start = Instant::now();
    let (a, b) = tokio::join!(tools.call("step", &one), tools.call("step", &two));
    assert!(a.is_ok() && b.is_ok());
    assert_eq!(start.elapsed(), Duration::from_secs(20));
    assert_eq!(*seen.lock().unwrap(), ["+1", "-1", "+2", "-2"]);
}

#[tokio::test]
async fn a_blocking_function_is_told_of_its_timeout() {
    let (done, finished) = std::sync::mpsc::channel();
    let done = Arc::new(Mutex::new(done));
    struct Done(Arc<Mutex<std::sync::mpsc::Sender<bool>>>);

    /// Works until it is told to stop.
    #[tool(timeout = "1ms")]
    fn work(context: &Context) -> Result<(), String> {
        while !context.is_cancelled() {
            std::thread::yield_now();
        }
        let done: &Done = context.state().ok_or("no channel")?;
        done.0.lock().map_err(|_| "poisoned")?.send(true).map_err(|error| error.to_string())
    }

    let tools = Toolset::new().with::<work>().state(Done(done));
    let error = tools.call("work", &json!({})).await.unwrap_err();
    assert_eq!(error, ToolError::TimedOut(Duration::from_millis(1)));
    assert!(tokio::task::spawn_blocking(move || finished.recv()).await.unwrap().unwrap());
}
