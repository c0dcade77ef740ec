//! MCP servers over standard streams: both eras, faults, no orphans.

#![allow(clippy::unwrap_used, clippy::panic, clippy::allow_attributes, reason = "helpers of tests")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use support::{call, call_text, raw, text, wait_until_gone};
use toolgate_tools::{
    Call, ChildCommand, Content, Era, Failure, Limits, McpServer, ProcessGuard, Registry, Scope,
    Settings, SourceOptions,
};

const SERVER: &str = env!("CARGO_BIN_EXE_mcp-test-server");

fn command(flags: &[&str]) -> ChildCommand {
    ChildCommand::new(std::iter::once(SERVER).chain(flags.iter().copied()))
}

fn server(flags: &[&str]) -> McpServer {
    McpServer::stdio("test", command(flags), &ProcessGuard::default())
        .with_probe_timeout(Duration::from_millis(500))
}

fn registry(flags: &[&str]) -> (Registry, Arc<McpServer>) {
    registry_with(flags, SourceOptions::default())
}

fn registry_with(flags: &[&str], options: SourceOptions) -> (Registry, Arc<McpServer>) {
    let registry = Registry::start(Settings::default()).unwrap();
    let source = Arc::new(server(flags));
    registry.add("test", Arc::<McpServer>::clone(&source), options).unwrap();
    (registry, source)
}

const ERAS: [&[&str]; 5] = [&[], &["legacy"], &["older"], &["silent"], &["dies"]];

#[tokio::test]
async fn both_eras_are_listed_and_called() {
    for flags in ERAS {
        let (registry, _) = registry(flags);
        let catalogue = registry.list(&Scope::operator()).await;
        assert_eq!(catalogue.tools.len(), 21, "{flags:?} {:?}", catalogue.failures);
        let arguments = r#"{"b":1e2,"a":12345678901234567890.10,"é":"\u00e9"}"#;
        assert_eq!(call_text(&registry, "echo", arguments).await, arguments, "{flags:?}");
        registry.close().await;
    }
}

#[tokio::test]
async fn a_fixed_era_is_not_probed() {
    for (era, flags) in [(Era::Legacy, &["dies"][..]), (Era::Modern, &[][..])] {
        let registry = Registry::start(Settings::default()).unwrap();
        registry
            .add("test", Arc::new(server(flags).with_era(era)), SourceOptions::default())
            .unwrap();
        assert_eq!(call_text(&registry, "echo", "{}").await, "{}");
    }
}

#[tokio::test]
async fn a_modern_server_that_answers_late_is_found() {
    let (registry, _) = registry(&["slow"]);
    assert_eq!(call_text(&registry, "echo", "{}").await, "{}");
}

#[tokio::test]
async fn t13_a_server_that_starts_late_is_not_started_again_by_each_listing() {
    let options =
        SourceOptions { list_timeout: Duration::from_millis(100), ..SourceOptions::default() };
    let (registry, _) = registry_with(&["late-start"], options);
    let first = registry.list(&Scope::operator()).await;
    assert!(matches!(&first.failures[..], [(_, Failure::Timeout { .. })]), "{first:?}");
    while registry.list(&Scope::operator()).await.tools.is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn law6_structured_results_arrive_as_they_were_written() {
    let (registry, _) = registry(&[]);
    let outcome = call(&registry, "structured", "{}").await;
    let structured = outcome.result.unwrap().structured.unwrap();
    assert_eq!(structured.get(), r#"{"b":1e2,"a":12345678901234567890.10}"#);
}

#[tokio::test]
async fn t31_images_are_images_and_odd_blocks_lose_no_other() {
    let (registry, _) = registry(&[]);
    let image = call(&registry, "image", "{}").await.result.unwrap();
    assert!(matches!(&image.content[..], [
        Content::Image { data, mime_type }, Content::Audio { .. },
    ] if data == "iVBORw==" && mime_type == "image/png"));
    let odd = call(&registry, "odd", "{}").await.result.unwrap();
    assert!(
        matches!(&odd.content[..], [Content::Unknown(_), Content::Text(text)] if text == "seen")
    );
}

#[tokio::test]
async fn failures_are_typed() {
    let (registry, _) = registry(&[]);
    let refused = call(&registry, "refuse", "{}").await.result.err();
    assert_eq!(
        refused,
        Some(Failure::Protocol { code: -32602, message: "no such city".to_owned() })
    );
    let failed = call(&registry, "fail", "{}").await;
    assert!(failed.is_error() && failed.fault() == Some("tool"));
    assert_eq!(text(&failed), "it broke");
    assert_eq!(call(&registry, "input", "{}").await.result.err(), Some(Failure::InputRequired));
    let large = call(&registry, "big", "{}").await.result.err();
    assert!(matches!(large, Some(Failure::TooLarge { .. })), "{large:?}");
    assert_eq!(call_text(&registry, "echo", "{}").await, "{}", "the connection goes on");
}

#[tokio::test]
async fn requests_for_state_alone_are_answered() {
    let (registry, _) = registry(&[]);
    assert_eq!(call_text(&registry, "state", "{}").await, "done");
}

#[tokio::test]
async fn t34_requests_of_the_server_are_refused_at_once() {
    let (registry, _) = registry(&["legacy"]);
    assert_eq!(call_text(&registry, "ask", "{}").await, "[Some(-32601), Some(-32601)]");
}

#[tokio::test]
async fn t15_all_pages_are_read() {
    let (registry, _) = registry(&["pages"]);
    assert_eq!(registry.list(&Scope::operator()).await.tools.len(), 21);
}

#[tokio::test]
async fn t16_a_cursor_that_does_not_advance_ends_the_listing() {
    for flag in ["stuck-cursor", "empty-cursor"] {
        let (registry, _) = registry(&[flag]);
        assert_eq!(registry.list(&Scope::operator()).await.tools.len(), 21, "{flag}");
    }
}

#[tokio::test]
async fn t17_list_changed_refreshes_the_catalogue() {
    for flags in [&[][..], &["legacy"]] {
        let (registry, _) = registry(flags);
        assert_eq!(registry.list(&Scope::operator()).await.tools.len(), 21);
        let mut seen = 0;
        while seen != 22 {
            // The subscription of the new era is opened in the background.
            assert_eq!(call_text(&registry, "grow", "{}").await, "grown");
            seen = registry.list(&Scope::operator()).await.tools.len();
        }
    }
}

#[tokio::test]
async fn t26_t27_noise_on_both_streams_is_harmless() {
    let (registry, _) = registry(&["banner", "stderr"]);
    assert_eq!(call_text(&registry, "echo", "{}").await, "{}");
}

#[tokio::test]
async fn t27_a_server_that_speaks_no_json_has_failed() {
    let (registry, _) = registry(&["garbage"]);
    let catalogue = registry.list(&Scope::operator()).await;
    assert!(matches!(&catalogue.failures[..], [(_, Failure::Unreachable(_))]), "{catalogue:?}");
}

#[tokio::test]
async fn t14_a_server_that_hangs_at_any_step_ends_in_a_timeout() {
    let steps: [&[&str]; 4] = [
        &["hang-at-start"],
        &["silent", "hang=initialize"],
        &["hang=tools/list"],
        &["hang=tools/call"],
    ];
    for flags in steps {
        let options = SourceOptions {
            list_timeout: Duration::from_millis(1500),
            limits: Limits { idle_timeout: Duration::from_millis(200), ..Limits::default() },
            ..SourceOptions::default()
        };
        let (registry, _) = registry_with(flags, options);
        let failure = call(&registry, "echo", "{}").await.result.err();
        assert!(matches!(failure, Some(Failure::Timeout { .. })), "{flags:?} {failure:?}");
    }
}

#[tokio::test]
async fn t30_progress_of_the_server_extends_the_time() {
    let options = SourceOptions {
        limits: Limits { idle_timeout: Duration::from_millis(150), ..Limits::default() },
        ..SourceOptions::default()
    };
    let (registry, _) = registry_with(&[], options);
    assert_eq!(registry.list(&Scope::operator()).await.tools.len(), 21);
    let (sender, mut receiver) = tokio::sync::mpsc::channel(8);
    let mut working = Call::new(Scope::operator(), "test.progress".parse().unwrap(), raw("{}"));
    working.progress = Some(sender);
    assert_eq!(text(&registry.call(working).await), "worked");
    assert_eq!(receiver.recv().await.and_then(|it| it.total), Some(4.0));
}

#[tokio::test]
async fn t29_a_cancelled_call_is_cancelled_at_the_server() {
    for flags in [&[][..], &["legacy"]] {
        let (registry, _) = registry(flags);
        assert_eq!(call_text(&registry, "cancelled", "{}").await, "0");
        let hanging = Call::new(Scope::operator(), "test.hang".parse().unwrap(), raw("{}"));
        let cancel = hanging.cancel.clone();
        let running = tokio::spawn({
            let registry = registry.clone();
            async move { registry.call(hanging).await }
        });
        while call_text(&registry, "calls", "{}").await == "1" {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
        assert_eq!(running.await.unwrap().result.err(), Some(Failure::Cancelled));
        while call_text(&registry, "cancelled", "{}").await == "0" {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn t29_a_server_that_dies_fails_its_calls_and_is_started_again() {
    for flags in [&[][..], &["legacy"]] {
        let (registry, source) = registry(flags);
        assert_eq!(call_text(&registry, "echo", "{}").await, "{}");
        let first = source.process_id().await;
        assert_eq!(call(&registry, "die", "{}").await.result.err(), Some(Failure::Crashed));
        assert_eq!(call_text(&registry, "echo", "{}").await, "{}");
        assert_ne!(source.process_id().await, first);
    }
}

#[tokio::test]
async fn a_server_that_keeps_dying_is_left_alone() {
    let (registry, _) = registry(&[]);
    let mut unreachable = 0;
    for _ in 0..8 {
        match call(&registry, "die", "{}").await.result.err() {
            Some(Failure::Unreachable(_)) => unreachable += 1,
            other => assert_eq!(other, Some(Failure::Crashed)),
        }
    }
    assert_eq!(unreachable, 3, "the circuit opens after five failures");
}

#[tokio::test]
async fn t36_parallel_calls_on_one_server_do_not_disturb_each_other() {
    let (registry, _) = registry(&[]);
    let calls = (0..100).map(|n| {
        let registry = registry.clone();
        async move {
            let arguments = format!(r#"{{"n":{n}}}"#);
            assert_eq!(call_text(&registry, "echo", &arguments).await, arguments);
        }
    });
    futures_util::future::join_all(calls).await;
}

#[tokio::test]
async fn t40_the_environment_of_a_server_is_cleared() {
    let mut command = command(&[]);
    command.env.insert("GIVEN".to_owned(), "1".to_owned());
    let registry = Registry::start(Settings::default()).unwrap();
    let source = McpServer::stdio("test", command, &ProcessGuard::default());
    registry.add("test", Arc::new(source), SourceOptions::default()).unwrap();
    let names = call_text(&registry, "env", "{}").await;
    let allowed = ["GIVEN", "HOME", "LANG", "PATH", "TMPDIR", "USER"];
    assert!(names.split(' ').all(|it| allowed.contains(&it)), "{names}");
    assert!(names.contains("GIVEN"));
    // Variables of `cargo test` are there in this process.
    assert!(std::env::vars().any(|(name, _)| name.starts_with("CARGO")));
}

#[tokio::test]
async fn t25_grandchildren_end_with_their_server() {
    let (registry, source) = registry(&["immortal"]);
    let grandchild: u32 = call_text(&registry, "spawn", "{}").await.parse().unwrap();
    let child = source.process_id().await.unwrap();
    drop(source);
    drop(registry);
    wait_until_gone(child).await;
    wait_until_gone(grandchild).await;
}

#[tokio::test]
async fn a_missing_program_is_unreachable() {
    let registry = Registry::start(Settings::default()).unwrap();
    let command = ChildCommand::new(["/nonexistent/server"]);
    let source = McpServer::stdio("test", command, &ProcessGuard::default());
    registry.add("test", Arc::new(source), SourceOptions::default()).unwrap();
    let failure = call(&registry, "echo", "{}").await.result.err();
    assert!(matches!(failure, Some(Failure::Unreachable(_))), "{failure:?}");
}

#[tokio::test]
async fn foreign_servers_get_no_session_and_their_hints_are_not_believed() {
    let (registry, _) = registry(&[]);
    let scope = Scope::operator().in_session("secret-session");
    let outcome = registry.call(Call::new(scope, "test.meta".parse().unwrap(), raw("{}"))).await;
    assert!(!text(&outcome).contains("secret-session"));
    assert!(!text(&outcome).contains("dev.toolgate"));
    let catalogue = registry.list(&Scope::operator()).await;
    assert!(catalogue.tools.iter().all(|it| !it.flags.deterministic));
}
