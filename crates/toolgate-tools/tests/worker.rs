//! Pool of worker processes.

#![allow(clippy::unwrap_used, clippy::panic, clippy::allow_attributes, reason = "helpers of tests")]

mod support;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use support::{call, call_text, raw, text, wait_until_gone};
use toolgate_tools::{
    Affinity, Call, ChildCommand, Failure, Limits, Outcome, ProcessGuard, Registry, Scope,
    Settings, SourceOptions, WorkerOptions, WorkerPool,
};

const SERVER: &str = env!("CARGO_BIN_EXE_mcp-test-server");

fn options(flags: &[&str]) -> WorkerOptions {
    WorkerOptions::new(ChildCommand::new(std::iter::once(SERVER).chain(flags.iter().copied())))
}

fn registry(options: WorkerOptions) -> (Registry, Arc<WorkerPool>) {
    let registry = Registry::start(Settings::default()).unwrap();
    let pool = Arc::new(WorkerPool::new("test", options, &ProcessGuard::default()));
    let limits = Limits { concurrency: 1000, ..Limits::default() };
    let source = SourceOptions { limits, max_in_flight: 1000, ..SourceOptions::default() };
    registry.add("test", Arc::<WorkerPool>::clone(&pool), source).unwrap();
    (registry, pool)
}

async fn call_in(registry: &Registry, session: &str, name: &str) -> Outcome {
    let scope = Scope::operator().in_session(session);
    let name = format!("test.{name}").parse().unwrap();
    registry.call(Call::new(scope, name, raw("{}"))).await
}

#[tokio::test]
async fn r076_r077_tools_of_workers_are_listed_and_called() {
    let (registry, pool) = registry(options(&[]));
    let catalogue = registry.list(&Scope::operator()).await;
    assert_eq!(catalogue.tools.len(), 21, "{:?}", catalogue.failures);
    assert_eq!(pool.process_ids().len(), 1, "ready before the first call");
    let arguments = r#"{"a":12345678901234567890.10}"#;
    assert_eq!(call_text(&registry, "echo", arguments).await, arguments);
}

#[tokio::test]
async fn hints_of_workers_are_believed() {
    let (registry, _) = registry(options(&[]));
    let catalogue = registry.list(&Scope::operator()).await;
    let deterministic: Vec<_> =
        catalogue.tools.iter().filter(|it| it.flags.deterministic).collect();
    assert_eq!(deterministic.len(), 1);
    assert_eq!(call_text(&registry, "calls", "{}").await, "1");
    assert_eq!(call_text(&registry, "calls", "{}").await, "1", "from the cache");
}

#[tokio::test]
async fn r083_session_call_and_deadline_reach_the_worker() {
    let (registry, _) = registry(options(&[]));
    let scope = Scope::operator().in_session("s-1");
    let mut call = Call::new(scope, "test.meta".parse().unwrap(), raw("{}"));
    call.id = "call-7".to_owned();
    let outcome = registry.call(call).await;
    let meta: serde_json::Value = serde_json::from_str(text(&outcome)).unwrap();
    assert_eq!(meta["dev.toolgate/session"], "s-1");
    assert_eq!(meta["dev.toolgate/call"], "call-7");
    assert!(meta["dev.toolgate/deadlineMs"].as_u64().is_some_and(|it| it > 0 && it <= 600_000));
    assert!(meta.get("dev.toolgate/payload").is_none());
}

#[tokio::test]
async fn calls_go_to_the_least_busy_process() {
    let (registry, _) = registry(WorkerOptions { processes: 3, concurrency: 1, ..options(&[]) });
    let calls = (0..3).map(|_| call_text(&registry, "pid", "{}"));
    let _ = futures_util::future::join_all(calls).await;
    let calls = (0..60).map(|_| call_text(&registry, "pid", "{}"));
    let pids: HashSet<_> = futures_util::future::join_all(calls).await.into_iter().collect();
    assert_eq!(pids.len(), 3);
}

#[tokio::test]
async fn r078_strict_affinity_keeps_the_state_of_a_session() {
    let options =
        WorkerOptions { processes: 3, concurrency: 1, affinity: Affinity::Strict, ..options(&[]) };
    let (registry, _) = registry(options);
    let counts = (0..10).map(|n| {
        let registry = registry.clone();
        async move {
            let session = format!("session-{n}");
            let mut counts = Vec::new();
            for _ in 0..5 {
                counts.push(text(&call_in(&registry, &session, "count").await).to_owned());
            }
            counts
        }
    });
    for counts in futures_util::future::join_all(counts).await {
        assert_eq!(counts, ["1", "2", "3", "4", "5"]);
    }
}

#[tokio::test]
async fn a_crash_fails_one_call_and_the_process_is_replaced() {
    let (registry, pool) = registry(WorkerOptions { processes: 2, ..options(&[]) });
    call_text(&registry, "echo", "{}").await;
    while pool.process_ids().len() < 2 {
        tokio::task::yield_now().await;
    }
    let before: HashSet<_> = pool.process_ids().into_iter().collect();
    assert_eq!(call(&registry, "die", "{}").await.result.err(), Some(Failure::Crashed));
    assert_eq!(call_text(&registry, "echo", "{}").await, "{}", "the other process goes on");
    loop {
        let now: HashSet<_> = pool.process_ids().into_iter().collect();
        if now.len() == 2 && now != before {
            assert_eq!(now.intersection(&before).count(), 1);
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_killed_worker_fails_its_call_and_is_replaced() {
    let (registry, pool) = registry(options(&[]));
    call_text(&registry, "echo", "{}").await;
    let pid = pool.process_ids()[0];
    let hanging = tokio::spawn({
        let registry = registry.clone();
        async move { call(&registry, "hang", "{}").await }
    });
    while call_text(&registry, "cancelled", "{}").await != "0" {}
    while call_text(&registry, "calls", "{}").await == "2" {}
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert_eq!(hanging.await.unwrap().result.err(), Some(Failure::Crashed));
    assert_eq!(call_text(&registry, "echo", "{}").await, "{}");
}

#[tokio::test]
async fn a_worker_that_keeps_crashing_is_left_alone() {
    let (registry, _) = registry(options(&[]));
    for _ in 0..5 {
        assert_eq!(call(&registry, "die", "{}").await.result.err(), Some(Failure::Crashed));
    }
    let failure = call(&registry, "echo", "{}").await.result.err();
    assert!(matches!(failure, Some(Failure::Unreachable(_))), "{failure:?}");
}

#[tokio::test]
async fn a_worker_that_does_not_start_is_unreachable() {
    let file = temporary("does-not-start");
    std::fs::write(&file, "").unwrap();
    let flag = format!("fail-if-file={}", file.display());
    let (registry, _) = registry(options(&[&flag]));
    let catalogue = registry.list(&Scope::operator()).await;
    let [(_, Failure::Unreachable(reason))] = &catalogue.failures[..] else {
        panic!("{catalogue:?}")
    };
    assert!(reason.contains("ImportError"), "{reason}");
    std::fs::remove_file(file).unwrap();
}

fn temporary(name: &str) -> std::path::PathBuf {
    let name = format!("toolgate-tools-{name}-{}", std::process::id());
    std::env::temp_dir().join(name)
}

#[tokio::test]
async fn processes_are_recycled_after_their_calls() {
    let (registry, _) = registry(WorkerOptions { recycle_calls: Some(5), ..options(&[]) });
    let first = call_text(&registry, "pid", "{}").await;
    let mut calls = 1;
    while call_text(&registry, "pid", "{}").await == first {
        calls += 1;
        tokio::task::yield_now().await;
    }
    assert!(calls >= 5);
    wait_until_gone(first.parse().unwrap()).await;
}

#[tokio::test]
async fn a_stuck_process_is_killed() {
    let options = WorkerOptions {
        probe_interval: Duration::from_millis(50),
        stuck_timeout: Duration::from_millis(200),
        ..options(&["legacy", "hang=ping"])
    };
    let (registry, pool) = registry(options);
    call_text(&registry, "echo", "{}").await;
    let first = pool.process_ids();
    while pool.process_ids() == first {
        tokio::task::yield_now().await;
    }
    wait_until_gone(first[0]).await;
}

#[tokio::test]
async fn the_memory_of_a_process_is_limited() {
    let mut options = options(&[]);
    options.command.memory_limit = Some(3 << 30);
    let (registry, pool) = registry(options);
    call_text(&registry, "echo", "{}").await;
    let limits =
        std::fs::read_to_string(format!("/proc/{}/limits", pool.process_ids()[0])).unwrap();
    let line = limits.lines().find(|it| it.starts_with("Max address space")).unwrap();
    assert!(line.contains(&(3_u64 << 30).to_string()), "{line}");
}

#[tokio::test]
async fn changed_code_is_loaded_and_broken_code_is_not() {
    let folder = temporary("watched");
    let broken = temporary("broken");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("tools.py"), "one").unwrap();
    let flag = format!("fail-if-file={}", broken.display());
    let options = WorkerOptions {
        watch: vec![folder.clone()],
        watch_interval: Duration::from_millis(20),
        ..options(&[&flag])
    };
    let (registry, pool) = registry(options);
    let first = call_text(&registry, "pid", "{}").await;
    std::fs::write(folder.join("tools.py"), "two and more").unwrap();
    while call_text(&registry, "pid", "{}").await == first {
        tokio::task::yield_now().await;
    }
    wait_until_gone(first.parse().unwrap()).await;
    let second = pool.process_ids();

    std::fs::write(&broken, "").unwrap();
    std::fs::write(folder.join("tools.py"), "three and even more").unwrap();
    // Long enough for several looks: the old process stays.
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(call_text(&registry, "echo", "{}").await, "{}");
    }
    assert_eq!(pool.process_ids(), second);
    std::fs::remove_dir_all(folder).unwrap();
    std::fs::remove_file(broken).unwrap();
}

#[tokio::test]
async fn closing_ends_all_processes() {
    let (registry, pool) = registry(WorkerOptions { processes: 2, ..options(&[]) });
    call_text(&registry, "echo", "{}").await;
    while pool.process_ids().len() < 2 {
        tokio::task::yield_now().await;
    }
    let pids = pool.process_ids();
    registry.close().await;
    for pid in pids {
        wait_until_gone(pid).await;
    }
    assert_eq!(call(&registry, "echo", "{}").await.result.err(), Some(Failure::UnknownTool));
}

#[tokio::test]
async fn four_processes_run_a_thousand_calls() {
    let (registry, _) = registry(WorkerOptions { processes: 4, ..options(&[]) });
    let calls = (0..1000).map(|n| {
        let registry = registry.clone();
        async move {
            let arguments = format!(r#"{{"n":{n}}}"#);
            assert_eq!(call_text(&registry, "echo", &arguments).await, arguments);
        }
    });
    futures_util::future::join_all(calls).await;
}

/// Name of the variable that makes `holds_a_pool` run.
const HOLD: &str = "TOOLGATE_TOOLS_HOLD";

/// Not a test: the process that `nothing_survives_kill_9` kills.
#[tokio::test]
#[ignore = "started by nothing_survives_kill_9"]
async fn holds_a_pool() {
    let Ok(path) = std::env::var(HOLD) else { return };
    let (registry, pool) = registry(options(&["immortal"]));
    let grandchild = call_text(&registry, "spawn", "{}").await;
    std::fs::write(&path, format!("{} {grandchild}\n", pool.process_ids()[0])).unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn t25_nothing_survives_kill_9_of_this_process() {
    let path = temporary("hold");
    let mut parent = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holds_a_pool", "--ignored"])
        .env(HOLD, &path)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let pids: Vec<u32> = loop {
        match std::fs::read_to_string(&path) {
            Ok(text) if text.ends_with('\n') => {
                break text.split_whitespace().map(|it| it.parse().unwrap()).collect();
            }
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    parent.kill().unwrap();
    parent.wait().unwrap();
    for pid in pids {
        wait_until_gone(pid).await;
    }
    std::fs::remove_file(path).unwrap();
}
