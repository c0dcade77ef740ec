//! `toolgate run`: choice of the gateway, keys that it sends, and cleanup.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustix::process::Signal;
use support::command::{GEMINI_KEY, Home, Server, send_signal, status, stderr, stdout, written};

/// Prints where the agent would go, with which key.
const SHOW: &str = r#"echo "$ANTHROPIC_BASE_URL $ANTHROPIC_AUTH_TOKEN""#;

/// Runs `toolgate run claude` with the gateway's usual address at `listen`; returns the agent's URL and key, and
/// standard error.
fn show(home: &Home, listen: &str, variables: &[(&str, &str)]) -> (String, String, String) {
    let agent = home.agent(SHOW);
    let variables = [&[("TOOLGATE_LISTEN", listen)], variables].concat();
    let output = home.output(&["run", "claude", "--program", &agent], &variables);
    let (said, text) = (stderr(&output), stdout(&output));
    assert!(output.status.success(), "{said}");
    let (url, key) = text.trim().split_once(' ').unwrap();
    (url.to_owned(), key.to_owned(), said)
}

/// A listener that answers every connection like a gateway, and reports the bytes that it received.
fn impostor() -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (send, received) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut stream = stream;
            let body =
                r#"{"identity":{"upstream":"simulator","host":"x","access":"open"},"proof":"00"}"#;
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nx-toolgate-request-id: r\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let mut heard = String::new();
            let _ = stream.read_to_string(&mut heard);
            let _ = send.send(heard);
        }
    });
    (address, received)
}

#[test]
fn a_listener_that_proves_nothing_gets_nothing() {
    let home = Home::new();
    let (address, received) = impostor();
    let key = [("GEMINI_API_KEY", GEMINI_KEY)];
    let (url, given, said) = show(&home, &address.to_string(), &key);
    assert_ne!(url, format!("http://{address}"));
    assert!(given.starts_with("tg-run-"), "not the user's key: {given}");
    assert!(said.contains("does not prove to be your gateway"), "{said}");
    assert_eq!(received.recv().unwrap(), "", "not a byte");

    // A left-over file does not help the impostor: it gets a nonce and nothing else.
    let run = home.path(".local/state/toolgate/run");
    let token = run.join("client-token");
    let file = run.join(format!("gateway-{address}"));
    fs::copy(&token, &file).unwrap();
    fs::write(&file, "ab".repeat(32)).unwrap();
    let (url, _, _) = show(&home, &address.to_string(), &key);
    assert_ne!(url, format!("http://{address}"));
    let heard = received.recv().unwrap();
    assert!(heard.starts_with("GET /toolgate/identity HTTP/1.1\r\n"), "{heard}");
    assert!(!heard.contains(GEMINI_KEY) && !heard.contains(&given), "{heard}");
}

/// Passes every connection on to `target`.
fn relay(target: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            let far = TcpStream::connect(&target).unwrap();
            let (mut from, mut to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut from, &mut to));
            let (mut from, mut to) = (far, near);
            thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    address
}

#[test]
fn a_running_gateway_is_used_and_a_relay_before_it_is_not() {
    let home = Home::new();
    let gateway = home.start(&["serve"], &[]);
    let (url, token, said) = show(&home, &gateway.address, &[]);
    assert_eq!(url, format!("http://{}", gateway.address), "{said}");
    assert!(said.contains("BUILT-IN SIMULATOR") && said.contains("(already running)"), "{said}");
    assert!(
        said.contains("model gemini-3.1-pro-preview (opus), gemini-3.6-flash (sonnet)"),
        "{said}"
    );
    assert!(said.trim_end().ends_with(&format!("dashboard http://{}/", gateway.address)), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let run = home.path(".local/state/toolgate/run");
    let file = run.join(format!("gateway-{}", gateway.address));
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(&run), mode(&file)), (0o700, 0o600));

    // Even with the same secret, the answer names the address that the gateway was asked at.
    let relay = relay(gateway.address.clone());
    fs::copy(&file, run.join(format!("gateway-{relay}"))).unwrap();
    let (url, again, said) = show(&home, &relay.to_string(), &[]);
    assert_ne!(url, format!("http://{relay}"));
    assert!(said.contains("does not prove to be your gateway"), "{said}");
    assert_eq!(again, token, "sessions go on with another gateway");

    assert!(gateway.end().contains("BUILT-IN SIMULATOR"));
    assert!(!file.exists(), "removed at the end");
}

#[test]
fn a_simulator_s_gateway_is_not_used_when_there_is_a_key() {
    let home = Home::new();
    let gateway = home.start(&["serve"], &[]);
    let (url, _, said) = show(&home, &gateway.address, &[("GEMINI_API_KEY", GEMINI_KEY)]);
    assert_ne!(url, format!("http://{}", gateway.address));
    let why = "runs on embedded simulator, this configuration on generativelanguage.googleapis.com";
    assert!(said.contains(why), "{said}");
    assert!(said.contains("claude on Gemini at generativelanguage.googleapis.com"), "{said}");
}

#[test]
fn a_named_gateway_is_the_user_s_word() {
    let home = Home::new();
    let gateway = home.start(&["serve"], &[]);
    let agent = home.agent(SHOW);
    let url = format!("http://{}", gateway.address);
    let arguments = ["run", "claude", "--program", &agent, "--gateway", &url];
    let output = home.output(&arguments, &[("GEMINI_API_KEY", GEMINI_KEY)]);
    assert!(stderr(&output).contains("BUILT-IN SIMULATOR"), "{}", stderr(&output));
    assert!(stdout(&output).contains("tg-run-"), "it needs no key: {}", stdout(&output));
    let arguments = ["run", "claude", "--program", &agent, "--gateway", "http://127.0.0.1:1"];
    let output = home.output(&arguments, &[("GEMINI_API_KEY", GEMINI_KEY)]);
    assert!(stderr(&output).contains("(--gateway, not verified)"), "{}", stderr(&output));
    assert!(stdout(&output).contains(GEMINI_KEY), "{}", stdout(&output));
}

#[test]
fn an_own_gateway_takes_its_agent_s_key_only() {
    let home = Home::new();
    let agent = home.agent(
        r#"env > environment; echo "$ANTHROPIC_BASE_URL $ANTHROPIC_AUTH_TOKEN" > shown; read wait"#,
    );
    let mut run = home.command(
        &["run", "claude", "--program", &agent],
        &[("TOOLGATE_LISTEN", "127.0.0.1:0"), ("TOOLGATE_API_KEYS", GEMINI_KEY)],
    );
    let mut run = run.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let shown = written(&home.path("work/shown"));
    let (url, key) = shown.trim().split_once(' ').unwrap();
    let address = url.strip_prefix("http://").unwrap();
    // An unknown path: an admitted request gets a 404 and is not forwarded.
    for (presented, want) in [(key, 404), ("another", 401), (GEMINI_KEY, 401)] {
        let head = format!("GET /v1/nothing HTTP/1.1\r\nx-api-key: {presented}");
        assert_eq!(status(address, &head), want, "{presented}");
    }
    assert_eq!(status(address, "GET /v1/nothing HTTP/1.1"), 401);
    let environment = fs::read_to_string(home.path("work/environment")).unwrap();
    assert!(!environment.contains(GEMINI_KEY), "{environment}");
    drop(run.stdin.take());
    run.wait().unwrap();
}

#[test]
fn run_needs_a_key_where_the_configuration_wants_gemini() {
    let home = Home::new();
    let agent = home.agent(SHOW);
    let variables = [("TOOLGATE_UPSTREAM", "developer"), ("TOOLGATE_LISTEN", "127.0.0.1:0")];
    let output = home.output(&["run", "claude", "--program", &agent], &variables);
    assert!(stderr(&output).contains("no Gemini key: set GEMINI_API_KEY"), "{}", stderr(&output));
}

#[test]
fn an_agent_that_a_signal_ends_gives_the_code_that_shells_give() {
    let home = Home::new();
    let variables = [("TOOLGATE_LISTEN", "127.0.0.1:0")];
    for (signal, code) in [("TERM", 143), ("KILL", 137), ("SEGV", 139)] {
        let agent = home.agent(&format!("kill -{signal} $$"));
        let output = home.output(&["run", "claude", "--program", &agent], &variables);
        assert_eq!(output.status.code(), Some(code), "{signal}");
    }
}

/// A closed terminal is a hang-up.
#[test]
fn run_gemini_leaves_no_folder_when_a_signal_ends_it() {
    for (signal, code) in [(Signal::HUP, 129), (Signal::INT, 130), (Signal::TERM, 143)] {
        let home = Home::new();
        let agent = home.agent(r#"echo "$GEMINI_CLI_HOME" > shown; exec sleep 600"#);
        let variables = [("TOOLGATE_LISTEN", "127.0.0.1:0")];
        let mut run = home.command(&["run", "gemini", "--program", &agent], &variables);
        let mut run = run.stdin(std::process::Stdio::null()).spawn().unwrap();
        let folder = written(&home.path("work/shown"));
        let folder = std::path::Path::new(folder.trim());
        assert!(folder.is_dir());
        send_signal(&run, signal);
        let status = run.wait().unwrap();
        assert_eq!(status.code(), Some(code), "{signal:?}");
        assert!(!folder.exists(), "{signal:?} leaves {}", folder.display());
    }
}

#[test]
fn claude_code_is_told_the_names_of_geminis_models() {
    let home = Home::new();
    let show = r#"echo "$ANTHROPIC_DEFAULT_OPUS_MODEL|$ANTHROPIC_DEFAULT_OPUS_MODEL_NAME|$ANTHROPIC_DEFAULT_HAIKU_MODEL|$ANTHROPIC_MODEL""#;
    let agent = home.agent(show);
    let listen = ("TOOLGATE_LISTEN", "127.0.0.1:0");
    let run = |more: &[&str], variables: &[(&str, &str)]| {
        let arguments = [&["run", "claude", "--program", &agent], more].concat();
        stdout(&home.output(&arguments, &[&[listen], variables].concat())).trim().to_owned()
    };
    let names = "gemini-3.1-pro-preview[1m]|Gemini 3.1 Pro Preview|gemini-3.5-flash-lite[1m]|";
    assert_eq!(run(&[], &[]), names);
    assert_eq!(run(&["--model", "gemini-4-argon"], &[]), format!("{names}gemini-4-argon[1m]"));
    let own = run(&[], &[("ANTHROPIC_DEFAULT_OPUS_MODEL", "mine")]);
    assert!(own.starts_with("mine||gemini-3.5"), "the user's own setting stays: {own}");
}

#[test]
fn codex_gets_a_catalogue_that_is_removed_after_it() {
    let home = Home::new();
    let catalogue =
        r#"{"models":[{"slug":"gpt","apply_patch_tool_type":"freeform","context_window":1}]}"#;
    // Prints its catalogue, or the one that it was given.
    let agent = home.agent(&format!(
        r#"if [ "$1" = debug ]; then echo '{catalogue}'; exit; fi
for it in "$@"; do case "$it" in model_catalog_json=*) file=${{it#*=}};; esac; done
file=$(echo "$file" | tr -d '"'); echo "$file"; cat "$file""#
    ));
    let variables = [("TOOLGATE_LISTEN", "127.0.0.1:0")];
    let output = home.output(&["run", "codex", "--program", &agent], &variables);
    let text = stdout(&output);
    let (path, content) = text.split_once('\n').unwrap();
    assert!(content.contains(r#""slug":"gemini-3.6-flash""#), "{content}");
    assert!(content.contains(r#""apply_patch_tool_type":"freeform""#), "{content}");
    assert!(content.contains(r#""context_window":1048576"#), "{content}");
    assert!(path.ends_with(".json") && !std::path::Path::new(path).exists(), "{path}");

    let old = home.agent(r#"if [ "$1" = debug ]; then exit 2; fi; echo "$@""#);
    let output = home.output(&["run", "codex", "--program", &old], &variables);
    assert!(stderr(&output).contains("fewer tools"), "{}", stderr(&output));
    assert!(stdout(&output).contains("model_context_window=1048576"), "{}", stdout(&output));
}

/// Listening ports of a process.
fn ports(server: &Server) -> usize {
    let pid = server.process.id();
    let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let targets = files.filter_map(|file| fs::read_link(file.unwrap().path()).ok());
    let inodes: Vec<String> = targets
        .filter_map(|target| {
            let target = target.to_string_lossy().into_owned();
            Some(target.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let tables = ["tcp", "tcp6"]
        .map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    let listening = lines.filter(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        words.get(3) == Some(&"0A")
            && words.get(9).is_some_and(|it| inodes.contains(&(*it).to_owned()))
    });
    listening.count()
}

#[test]
fn a_gateway_on_the_simulator_opens_one_port() {
    let home = Home::new();
    let gateway = home.start(&["serve"], &[]);
    assert_eq!(gateway.models(""), 200, "the simulator answers");
    assert_eq!(ports(&gateway), 1);
}

#[test]
fn control_endpoints_of_the_simulator_need_the_key() {
    let home = Home::new();
    let own = home.start(&["sim"], &[("TOOLGATE_SIM_CONTROL_KEY", "a-control-key")]);
    let get = |server: &Server, key: &str| {
        let head = format!("GET /__sim/requests HTTP/1.1\r\nx-toolgate-control-key: {key}");
        status(&server.address, &head)
    };
    assert_eq!((get(&own, ""), get(&own, "wrong"), get(&own, "a-control-key")), (403, 403, 200));
    let page = "GET /__sim/requests HTTP/1.1\r\nx-toolgate-control-key: a-control-key\r\norigin: https://evil.example";
    assert_eq!(status(&own.address, page), 403);
    let rebound = "GET /v1beta/models HTTP/1.1\r\nhost: evil.example\r\nx-goog-api-key: k";
    assert_eq!(status(&own.address, rebound), 403);
    assert!(!own.end().contains("a-control-key"));

    let log = home.path("work/sim.log");
    let mut sim = home.command(&["sim", "--listen", "127.0.0.1:0"], &[]);
    sim.stdout(std::process::Stdio::piped()).stderr(fs::File::create(&log).unwrap());
    let mut sim = sim.spawn().unwrap();
    let text = written(&log);
    let key = text.trim().rsplit_once(' ').unwrap().1;
    assert_eq!(key.len(), 64, "{text}");
    let _ = sim.kill();
    sim.wait().unwrap();

    let short = home.output(&["sim", "--control-key", "short"], &[]);
    assert!(stderr(&short).contains("at least 8 characters"), "{}", stderr(&short));
}
