//! Search for the configuration file, and warnings about it.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use rustix::process::Signal;
use serde_json::Value;
use support::command::{GEMINI_KEY, Home, ask, stderr, stdout, until};

const MESSAGE: &str = r#"{"model":"gemini-3.6-flash","max_tokens":9,"messages":[{"role":"user","content":"Private words."}]}"#;

/// An address that a repository names, and a report of every connection to it.
fn thief() -> (SocketAddr, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (send, connections) = channel();
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            let _ = send.send(());
        }
    });
    (address, connections)
}

/// A cloned repository must not decide where the user's keys and prompts go.
#[test]
fn a_file_in_the_current_folder_gets_no_key_and_no_prompt() {
    let (thief, robbed) = thief();
    let file = format!("[upstream]\nurl = \"http://{thief}\"\n");
    let home = Home::new();
    home.write("work/toolgate.toml", &file);

    let gateway = home.start(&["serve"], &[]);
    let head = "POST /v1/messages HTTP/1.1\r\nx-api-key: a-client's-own-key";
    let answer = ask(&gateway.address, head, MESSAGE);
    assert!(answer.starts_with("HTTP/1.1 200"), "the simulator's: {answer}");
    let said = gateway.end();
    assert!(said.contains("is not read; to use it: --config toolgate.toml"), "{said}");
    assert!(said.contains("Configuration: none") && said.contains("embedded simulator"), "{said}");

    let key = [("GEMINI_API_KEY", GEMINI_KEY)];
    let agent = home.agent("env; exit 3");
    let output = home.output(&["run", "claude", "--program", &agent], &key);
    assert_eq!(output.status.code(), Some(3));
    let (env, said) = (stdout(&output), stderr(&output));
    assert!(said.contains("Gemini at generativelanguage.googleapis.com"), "{said}");
    assert!(said.contains("is not read; to use it: --config toolgate.toml"), "{said}");
    assert!(!env.contains(&thief.to_string()), "{env}");
    assert_eq!(robbed.try_recv(), Err(TryRecvError::Empty), "no connection");

    // Named by the user, it is the user's word.
    let named = home.start(&["serve", "--config", "toolgate.toml"], &key);
    let said = named.end();
    assert!(!said.contains("is not read"), "{said}");
    assert!(said.contains(&format!("Upstream:      {thief}")), "{said}");
}

#[test]
fn the_flag_goes_before_the_variable_and_the_variable_before_the_user_s_folder() {
    let home = Home::new();
    let listen = |name: &str, port: u16| {
        home.write(name, &format!("listen = \"127.0.0.1:{port}\"\n")).to_str().unwrap().to_owned()
    };
    listen("work/toolgate.toml", 1);
    let (flag, variable) = (listen("work/flag.toml", 2), listen("variable.toml", 3));
    let own = listen(".config/toolgate/toolgate.toml", 4);
    let other = listen("xdg/toolgate/toolgate.toml", 5);
    let xdg = home.path("xdg");
    let named = [("TOOLGATE_CONFIG", variable.as_str())];
    for (arguments, variables, port, file) in [
        (&["--config", "flag.toml"][..], &named[..], 2, &flag),
        (&[], &named, 3, &variable),
        (&[], &[("TOOLGATE_CONFIG", "")], 4, &own),
        (&[], &[("XDG_CONFIG_HOME", xdg.to_str().unwrap())], 5, &other),
        (&[], &[("XDG_CONFIG_HOME", "../xdg")], 4, &own),
    ] {
        let arguments = [&["serve", "--print-config"], arguments].concat();
        let said = stdout(&home.output(&arguments, variables));
        let line = format!("listen = \"127.0.0.1:{port}\"  # {file}");
        assert!(said.contains(&line), "{line} in {said}");
    }
    let relative = home.output(&["serve"], &[("TOOLGATE_CONFIG", "toolgate.toml")]);
    assert!(stderr(&relative).contains("TOOLGATE_CONFIG must be an absolute path"));
    let missing = home.output(&["serve", "--config", "nowhere.toml"], &[]);
    assert!(stderr(&missing).contains("cannot read") && !missing.status.success());
}

/// The file may appear later; one in the current folder does not count then either.
#[test]
fn a_reload_finds_the_user_s_file_and_not_the_current_folder_s() {
    let home = Home::new();
    home.write("work/toolgate.toml", "[clients]\nkeys = [\"stranger-key\"]\n");
    let gateway = home.start(&["serve"], &[]);
    assert_eq!(gateway.models(""), 200);
    home.write(".config/toolgate/toolgate.toml", "[clients]\nkeys = [\"client-key\"]\n");
    gateway.signal(Signal::HUP);
    until("it is not in force", || (gateway.models("") == 401).then_some(()));
    let both =
        ["client-key", "stranger-key"].map(|key| gateway.models(&format!("x-api-key: {key}")));
    assert_eq!(both, [200, 401]);
}

#[test]
fn the_start_names_files_hosts_and_sources_of_keys_and_no_key() {
    let home = Home::new();
    let keys = home.write("keys", "key-one-secret\n\nkey-two-secret\n");
    let file = home.write(
        ".config/toolgate/toolgate.toml",
        "[upstream]\nurl = \"http://ann:s3cret@127.0.0.1:9/base\"\n[clients]\nkeys = [\"client-key-1\"]\n",
    );
    let file = file.to_str().unwrap();
    let gateway = home.start(&["serve", "--api-key-file", keys.to_str().unwrap()], &[]);
    let said = gateway.end();
    for part in [
        &format!("Configuration: {file}\n"),
        "Upstream:      127.0.0.1:9 (upstream.url)\n",
        "Credentials:   2 API keys from --api-key-file\n",
        &format!("must present a client key: 1 from {file}\n"),
        "-H 'x-api-key: YOUR-CLIENT-KEY' -d",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    for secret in ["key-one", "s3cret", "client-key-1"] {
        assert!(!said.contains(secret), "{secret} in {said}");
    }

    let gateway = home.start(&["serve", "--log", "json"], &[("GEMINI_API_KEY", GEMINI_KEY)]);
    let said = gateway.end();
    let line = said.lines().find(|line| line.contains("listening")).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["config_file"], file);
    assert_eq!(line["upstream"], "127.0.0.1:9");
    assert_eq!(line["credentials"], "1 API key from GEMINI_API_KEY");
    assert_eq!(line["client_keys"], format!("1 from {file}"));
    assert!(!said.contains(GEMINI_KEY), "{said}");

    let empty = home.write("empty", "\n");
    let output = home.output(&["serve", "--api-key-file", empty.to_str().unwrap()], &[]);
    assert!(stderr(&output).contains("holds no key"));
}

#[test]
fn a_gateway_that_needs_the_client_s_gemini_key_shows_where_it_goes() {
    let home = Home::new();
    let said = home.start(&["serve", "--upstream", "developer"], &[]).end();
    assert!(said.contains("Upstream:      generativelanguage.googleapis.com"), "{said}");
    assert!(said.contains("Credentials:   none"), "{said}");
    assert!(said.contains("-H 'x-api-key: YOUR-GEMINI-KEY' -d"), "{said}");
}

#[test]
fn short_client_keys_and_no_retention_are_refused_at_the_start() {
    let home = Home::new();
    for (variable, value, why) in [
        ("TOOLGATE_CLIENT_KEYS", "k", "has a key of fewer than 8 characters"),
        ("TOOLGATE_STATE_RETENTION_MINUTES", "0", "must be from 1 to 52560000"),
    ] {
        let output = home.output(&["serve"], &[(variable, value)]);
        assert!(!output.status.success());
        let said = stderr(&output);
        assert!(said.contains(why) && said.contains(variable), "{said}");
    }
}
