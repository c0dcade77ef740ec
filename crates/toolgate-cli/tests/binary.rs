//! The binary as a user starts it.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A command of the binary that listens; it ends with the test.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        Self::spawn(arguments, |command| command.stderr(Stdio::null()))
    }

    /// The same, with a log level.
    fn logging(arguments: &[&str], level: &str) -> Self {
        Self::spawn(arguments, |command| command.env("RUST_LOG", level).stderr(Stdio::piped()))
    }

    /// Starts it on a port that the system chooses, and waits for the address.
    fn spawn(arguments: &[&str], set: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        command
            .args(arguments)
            .args(["--listen", "127.0.0.1:0"])
            .env("HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/home"))
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .env_remove("GEMINI_API_KEY")
            .env_remove("RUST_LOG")
            .stdout(Stdio::piped());
        let mut process = set(&mut command).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (_, address) = line.trim().rsplit_once("http://").unwrap();
        Self { process, address: address.to_owned() }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.process.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Ends it, and returns its log.
    fn log_to_the_end(&mut self) -> String {
        self.signal(Signal::TERM);
        let mut log = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        log
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Posts a body; gives the whole answer.
    fn post(&self, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer test-key\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn r103_r125_a_gateway_before_a_simulator_answers_in_every_dialect() {
    let sim = Server::start(&["sim"]);
    let upstream = format!("http://{}", sim.address);
    let gateway = Server::start(&["serve", "--upstream-url", &upstream]);
    for (path, body, wanted) in [
        (
            "/v1/messages",
            r#"{"model":"gemini-3.6-flash","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}"#,
            r#""type":"message""#,
        ),
        ("/v1/responses", r#"{"model":"gemini-3.6-flash","input":"Hi"}"#, r#""object":"response""#),
        (
            "/v1/chat/completions",
            r#"{"model":"gemini-3.6-flash","messages":[{"role":"user","content":"Hi"}]}"#,
            r#""object":"chat.completion""#,
        ),
        (
            "/v1beta/models/gemini-3.6-flash:generateContent",
            r#"{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}"#,
            r#""candidates":"#,
        ),
    ] {
        let answer = gateway.post(path, body);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        assert!(answer.contains(wanted), "{path}: {answer}");
    }
}

/// R142: how much is logged is a matter of the level; secrets are a matter of none.
#[test]
fn r142_levels_of_the_log_show_more_or_less() {
    let body = r#"{"model":"gemini-3.6-flash","max_tokens":9,"mystery":1,"messages":[{"role":"user","content":"Hi"}]}"#;
    for (level, words) in [
        ("error", [false, false]),
        ("info", [true, false]),
        ("toolgate_gateway=debug", [true, true]),
    ] {
        let mut server = Server::logging(&["serve", "--store", "memory"], level);
        assert!(server.post("/v1/messages", body).starts_with("HTTP/1.1 200"));
        let log = server.log_to_the_end();
        let found = ["answered", "mystery"].map(|word| log.contains(word));
        assert_eq!(found, words, "{level}: {log}");
        assert!(!log.contains("test-key"), "{log}");
    }
}

/// A prompt is in no log either, even if it is the invalid part of the request.
#[test]
fn r142_the_log_holds_no_prompt() {
    let prompt = "Very private words. ".repeat(1000);
    let mut server = Server::logging(&["serve", "--store", "memory"], "debug");
    for (messages, status) in [
        (format!("\"{prompt}\""), "HTTP/1.1 400"),
        (format!(r#"[{{"role":"user","content":"{prompt}"}}]"#), "HTTP/1.1 200"),
    ] {
        let body =
            format!(r#"{{"model":"gemini-3.6-flash","max_tokens":9,"messages":{messages}}}"#);
        let answer = server.post("/v1/messages", &body);
        assert!(answer.starts_with(status), "{answer}");
    }
    let log = server.log_to_the_end();
    assert!(log.contains("messages: expected an array, found a string"), "{log}");
    assert!(!log.contains("private"), "{log}");
}

/// An entry of the log is a line: no name that a client gives begins another.
#[test]
fn clients_cannot_write_entries_of_the_log() {
    let mut server = Server::logging(&["serve", "--store", "memory"], "debug");
    let body = r#"{"model":"gemini\r\nERROR forged\u001bc","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"a\nERROR forged","input_schema":{"type":"b\nERROR forged"}}]}"#;
    server.post("/v1/messages", body);
    let log = server.log_to_the_end();
    assert!(log.contains(r"gemini\r\nERROR forged\x1bc"), "{log}");
    assert!(!log.lines().any(|line| line.trim_start().starts_with("ERROR")), "{log}");
    assert!(!log.contains(['\r', '\x1b']), "{log}");
}

/// A client that disconnects is logged as cancelled, not as answered.
#[test]
fn the_log_tells_clients_that_left_from_those_with_an_answer() {
    let folder = Folder::new("left");
    let script = folder.0.join("silent.toml");
    let silent = "[[turn]]\ntimes = 0\nfault = { kind = \"stall\", after = 1 }\nsay = [{ chunk = \"Words, \" }, { chunk = \"cut.\" }]\n";
    fs::write(&script, silent).unwrap();
    let sim = Server::start(&["sim", "--script", script.to_str().unwrap()]);
    let upstream = format!("http://{}", sim.address);
    let arguments = ["serve", "--store", "memory", "--upstream-url", &upstream];
    let mut gateway = Server::logging(&arguments, "info");
    let body = r#"{"model":"gemini-3.6-flash","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hi"}]}"#;
    let mut client = TcpStream::connect(&gateway.address).unwrap();
    let head = "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-api-key: k\r\ncontent-length";
    client.write_all(format!("{head}: {}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
    client.read_exact(&mut [0; 12]).unwrap();
    drop(client);
    let mut log = BufReader::new(gateway.process.stderr.take().unwrap()).lines();
    let line = log.find_map(|line| line.ok().filter(|line| line.contains("outcome="))).unwrap();
    assert!(line.contains("client_gone") && line.ends_with("client disconnected"), "{line}");
}

/// Whatever holds to the end is named when a new file would change it.
#[test]
fn a_reload_names_what_changes_with_the_next_start_only() {
    let folder = Folder::new("reload");
    let file = folder.0.join("gate.toml");
    fs::write(&file, "store = \"memory\"\n").unwrap();
    let arguments = ["serve", "--config", file.to_str().unwrap()];
    let mut server = Server::spawn(&arguments, |command| command.stderr(Stdio::piped()));
    let key = "ab".repeat(32);
    let changed = format!(
        "store = \"memory\"\nstore_mib = 1\nthreads = 3\nlog = \"warn\"\nlog_format = \"json\"\n[signatures]\nkey = \"{key}\"\n"
    );
    fs::write(&file, changed).unwrap();
    let pid = Pid::from_raw(server.process.id().cast_signed()).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
    let log = BufReader::new(server.process.stderr.take().unwrap()).lines().map(Result::unwrap);
    let log: Vec<String> =
        log.take_while(|line| !line.contains("`signatures.key` changes")).collect();
    for setting in ["store_mib", "threads", "log", "log_format"] {
        let said = format!("`{setting}` changes with the next start only");
        assert!(log.iter().any(|line| line.contains(&said)), "{setting}: {log:?}");
    }
    for setting in ["`listen`", "`store`", key.as_str()] {
        assert!(!log.iter().any(|line| line.contains(setting)), "{setting}: {log:?}");
    }
}

#[test]
fn what_is_unknown_is_named() {
    let binary = env!("CARGO_BIN_EXE_toolgate");
    let output = Command::new(binary).args(["serve", "--no-such-option"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--no-such-option"), "{said}");
}

/// A folder of its own, gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("toolgate-binary-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What `toolgate run` starts in place of an agent, and what that prints. The home is `home`, and no
/// gateway is running.
fn run(agent: &str, home: &Folder, script: &str, more: &[&str]) -> (i32, String) {
    let program = home.0.join("agent");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_toolgate"))
        .args(["run", agent, "--program", program.to_str().unwrap()])
        .args(more)
        .current_dir(&home.0)
        .env("HOME", &home.0)
        .env("TOOLGATE_LISTEN", "127.0.0.1:1")
        .envs([("ANTHROPIC_API_KEY", "the user's")])
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_STATE_HOME")
        .env_remove("GEMINI_API_KEY")
        .env_remove("GEMINI_CLI_HOME")
        .output()
        .unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn run_claude_sets_the_environment() {
    let home = Folder::new("claude");
    let script = r#"echo "$ANTHROPIC_BASE_URL|$ANTHROPIC_AUTH_TOKEN|${ANTHROPIC_API_KEY-none}|$ANTHROPIC_MODEL|$*"; exit 7"#;
    let (code, said) = run("claude", &home, script, &["--model", "m", "--", "-p", "hi"]);
    assert_eq!(code, 7, "the agent's own");
    let (url, rest) = said.trim().split_once('|').unwrap();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    let (key, rest) = rest.split_once('|').unwrap();
    assert!(key.starts_with("tg-run-"), "{key}");
    assert_eq!(rest, "none|m|-p hi");
}

#[test]
fn i4_run_codex_gives_settings_on_the_command_line() {
    let home = Folder::new("codex");
    let folder = home.0.join(".config/toolgate");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("toolgate.toml"), "[clients]\nkeys = [\"client-key\"]\n").unwrap();
    let (code, said) =
        run("codex", &home, r#"echo "$TOOLGATE_CLIENT_KEY"; echo "$@""#, &["--", "exec", "hi"]);
    assert_eq!(code, 0);
    let (key, arguments) = said.trim().split_once('\n').unwrap();
    assert_eq!(key, "client-key", "the file's");
    assert!(arguments.contains("base_url=\"http://127.0.0.1:"), "{arguments}");
    assert!(arguments.contains("model_context_window=1048576"), "{arguments}");
    assert!(arguments.ends_with("exec hi"), "{arguments}");
}

#[test]
fn run_gemini_gives_a_home_and_leaves_the_user_s_as_it_is() {
    let home = Folder::new("gemini");
    let own = home.0.join(".gemini");
    fs::create_dir(&own).unwrap();
    let settings = r#"{"ui":{"theme":"x"},"security":{"auth":{"selectedType":"oauth-personal"}}}"#;
    fs::write(own.join("settings.json"), settings).unwrap();
    fs::write(own.join("GEMINI.md"), "memory").unwrap();
    let script = r#"cd "$GEMINI_CLI_HOME/.gemini" && cat settings.json GEMINI.md && echo session > tmp/one && echo new > trusted && rm GEMINI.md && echo changed > GEMINI.md && mkdir d && echo deep > d/settings.json && echo "|$GEMINI_CLI_HOME|$GOOGLE_GEMINI_BASE_URL|$GEMINI_API_KEY""#;
    let (code, said) = run("gemini", &home, script, &[]);
    assert_eq!(code, 0, "{said}");
    let words: Vec<_> = said.trim().split('|').collect();
    let [files, new_home, url, key] = words[..] else { panic!("{said}") };
    assert_eq!(files, settings.replace("oauth-personal", "gemini-api-key") + "memory");
    assert!(url.starts_with("http://127.0.0.1:") && key.starts_with("tg-run-"), "{said}");
    assert!(!Path::new(new_home).exists(), "it is gone");
    assert_eq!(fs::read_to_string(own.join("settings.json")).unwrap(), settings);
    for (name, text) in [
        ("tmp/one", "session"),
        ("trusted", "new"),
        ("GEMINI.md", "changed"),
        ("d/settings.json", "deep"),
    ] {
        assert_eq!(fs::read_to_string(own.join(name)).unwrap().trim(), text, "{name}");
    }

    // Settings that select a key need no temporary home.
    fs::write(own.join("settings.json"), settings.replace("oauth-personal", "gemini-api-key"))
        .unwrap();
    let (_, said) = run("gemini", &home, r#"echo "${GEMINI_CLI_HOME-none}""#, &[]);
    assert_eq!(said.trim(), "none");
}

#[test]
fn run_names_a_program_that_is_not_there() {
    let output = Command::new(env!("CARGO_BIN_EXE_toolgate"))
        .args(["run", "claude", "--program", "/nowhere/claude", "--gateway", "http://127.0.0.1:1"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("cannot start /nowhere/claude"), "{said}");
}

/// A request that makes the gateway log more than 100 KiB at level debug.
fn loud(messages: &str) -> String {
    let mystery: String = (0..500).map(|at| format!(r#""mystery_{at:0>100}":1,"#)).collect();
    format!(r#"{{"model":"gemini-3.6-flash","max_tokens":9,{mystery}"messages":{messages}}}"#)
}

/// A stalled log reader delays no turn: entries are dropped and counted.
#[test]
fn a_log_that_is_not_read_holds_nothing_up() {
    let mut server = Server::logging(&["serve", "--store", "memory"], "debug");
    let body = loud(r#"[{"role":"user","content":"Hi"}]"#);
    // A pipe holds 64 KiB, the queue 1 MiB.
    for answered in 1.. {
        assert!(server.post("/v1/messages", &body).starts_with("HTTP/1.1 200"));
        if !server.get("/metrics").contains("toolgate_log_entries_dropped_total 0\n") {
            break;
        }
        assert!(answered < 500, "nothing was dropped");
    }
    assert!(server.log_to_the_end().contains("log entries dropped"));
}

/// A log reader that stalls does not delay the exit.
#[test]
fn a_log_that_is_not_read_does_not_hold_up_the_end() {
    let mut server = Server::logging(&["serve", "--store", "memory"], "debug");
    for _ in 0..5 {
        server.post("/v1/messages", &loud("[]"));
    }
    server.signal(Signal::TERM);
    assert!(server.process.wait().unwrap().success());
}
