//! Gateways and one real Valkey (or Redis) server: `cargo xtask test --only valkey`.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use toolgate_sim::{Fault, RunningSim, Script, Sim, SimConfig};

use super::client::{Dialect, Habit, Talk, script};
use super::process::{Folder, Toolgate};
use super::signatures::{Gates, HEAD, check_document, row};

/// A server, killed when dropped.
struct Server {
    port: u16,
    child: Child,
}

impl Server {
    fn start(options: &[&str]) -> Self {
        // Another process may take the port before the server does.
        let ports = std::iter::repeat_with(|| {
            TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
        });
        let mut tried = ports.take(5).filter_map(|port| Self::start_on(port, options));
        tried.next().expect("the server does not start")
    }

    fn start_on(port: u16, options: &[&str]) -> Option<Self> {
        let number = port.to_string();
        let is_tls = options.contains(&"--tls-port");
        let mut started = ["valkey-server", "redis-server"].into_iter().filter_map(|program| {
            let options = options.iter().map(|it| if *it == "PORT" { &number } else { *it });
            Command::new(program)
                .args(["--port", if is_tls { "0" } else { &number }, "--bind", "127.0.0.1"])
                .args(["--save", "", "--appendonly", "no"])
                .args(options)
                .stdout(Stdio::piped())
                .spawn()
                .ok()
        });
        let child = started.next().expect("neither valkey-server nor redis-server is installed");
        let mut server = Self { port, child };
        let mut said = BufReader::new(server.child.stdout.take()?).lines();
        let is_ready = |line: std::io::Result<String>| line.unwrap().contains("Ready to accept");
        let is_up = said.any(is_ready);
        // Drain the rest of its output.
        std::thread::spawn(move || said.count());
        is_up.then_some(server)
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Ends at once, and forgets everything.
    fn kill(mut self) -> u16 {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.port
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks again and again, at the pace of the answers.
async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    while !is_so().await {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only valkey"]
async fn valkey_lets_replicas_take_turns() {
    let server = Server::start(&[]);
    let mut table = HEAD.to_owned();
    for (name, habit) in [
        ("every turn by another replica", Habit::Faithful),
        ("every turn by another replica, thinking stripped", Habit::StripsThinking),
        ("every turn by another replica, thinking stripped, ids of 64 characters", Habit::LongIds),
        ("every turn by another replica, thinking stripped, other ids", Habit::OtherAlphabet),
    ] {
        row(&mut table, name, Gates::Two(&server.url()), habit).await;
    }
    check_document(&table);
}

/// Store metrics of a gateway.
async fn is_away(gate: &Toolgate) -> bool {
    let (_, text) = gate.get("/metrics").await;
    let line = text.lines().find(|line| line.starts_with("toolgate_store_away "));
    line.unwrap_or_else(|| panic!("{text}")).ends_with('1')
}

/// Sends a message in a conversation; returns the number of turns that the model saw.
async fn say(gate: &Toolgate, sim: &RunningSim, text: &str) -> usize {
    let body = json!({"model": "gemini-3-flash", "input": text, "conversation": "c"});
    let answer = gate.post("/v1/responses", &[], &body).await;
    assert_eq!(answer["status"], "completed", "{answer}");
    let seen = sim.requests();
    let asked: Value = serde_json::from_slice(&seen.last().unwrap().raw).unwrap();
    asked["contents"].as_array().unwrap().len()
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only valkey"]
async fn valkey_killed_and_brought_back_loses_no_turn() {
    let server = Server::start(&[]);
    let sim = Sim::start(SimConfig::scripted(Script::new().text("Yes.").times(0))).await.unwrap();
    let one = Toolgate::start(&sim.url(), &server.url());
    let two = Toolgate::start(&sim.url(), &server.url());
    assert_eq!(say(&one, &sim, "a").await, 1);
    assert_eq!(say(&two, &sim, "b").await, 3, "the other replica knows");
    assert_eq!(say(&one, &sim, "c").await, 5);
    let port = server.kill();
    // It has read or written all of them.
    assert_eq!(say(&one, &sim, "d").await, 7);
    assert_eq!(say(&one, &sim, "e").await, 9);
    assert!(is_away(&one).await);
    until(async || is_away(&two).await).await;
    // A miss is inconclusive while the server is away: not a 404.
    let (status, text) = two.get("/v1/responses/resp_unknown").await;
    assert_eq!(status, 503, "{text}");
    let new = json!({"model": "gemini-3-flash", "input": "x", "conversation": "never heard of"});
    assert_eq!(two.send(Method::POST, "/v1/responses", &[], Some(&new)).await.0, 503);
    // A client that sends the whole history is served as usual.
    let whole = json!({"model": "gemini-3-flash", "input": "x", "store": false});
    two.post("/v1/responses", &[], &whole).await;

    let server = Server::start_on(port, &[]).expect("the server does not come back");
    for gate in [&one, &two] {
        until(async || !is_away(gate).await).await;
    }
    let list = "/v1/conversations/c/items?order=asc&limit=100";
    let (status, text) = two.get(list).await;
    assert_eq!(status, 200, "{text}");
    let items: Value = serde_json::from_str(&text).unwrap();
    let items = items["data"].as_array().unwrap();
    let users = items.iter().filter(|item| item["role"] == "user");
    let said: Vec<_> = users.map(|item| item["content"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(said, ["a", "b", "c", "d", "e"]);
    assert_eq!(say(&two, &sim, "f").await, 11);
    assert_eq!(two.get("/v1/responses/resp_unknown").await.0, 404);
    drop(server);
}

/// A server that comes back empty gets the signatures of the session from the gateway that has
/// them, by id and by content, and the other finds them there.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only valkey"]
async fn valkey_killed_and_brought_back_loses_no_signature() {
    for habit in [Habit::StripsThinking, Habit::OtherAlphabet] {
        let server = Server::start(&[]);
        let sim = Sim::start(SimConfig::scripted(script())).await.unwrap();
        let one = Toolgate::start(&sim.url(), &server.url());
        let two = Toolgate::start(&sim.url(), &server.url());
        let mut talk = Talk::new(Dialect::Chat, habit);
        for _ in 0..4 {
            assert!(talk.turn(&one).await);
        }
        let port = server.kill();
        for _ in 0..2 {
            assert!(talk.turn(&one).await);
        }
        until(async || is_away(&two).await).await;
        let server = Server::start_on(port, &[]).expect("the server does not come back");
        for gate in [&one, &two] {
            until(async || !is_away(gate).await).await;
        }
        while talk.turn(&two).await {}
        let counters = sim.counters();
        let told = (counters.signatures, counters.placeholders, counters.doubled);
        assert_eq!(told, (55, 0, 0), "{habit:?}: {counters:?}");
        drop(server);
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only valkey"]
async fn valkey_shows_a_response_in_the_making_to_the_other_replica() {
    let server = Server::start(&[]);
    let slow = Script::new().text("Here it is.").pace(Duration::from_millis(300), Duration::ZERO);
    let never = slow.finish().text("never").fault(Fault::Stall { after: 0, ms: None }).times(0);
    let sim = Sim::start(SimConfig::scripted(never)).await.unwrap();
    let one = Toolgate::start(&sim.url(), &server.url());
    let two = Toolgate::start(&sim.url(), &server.url());
    let begin = async |stream: bool| {
        let body =
            json!({"model": "gemini-3-flash", "input": "x", "background": true, "stream": stream});
        let (status, text) = one.send(Method::POST, "/v1/responses", &[], Some(&body)).await;
        assert_eq!(status, 200, "{text}");
        text
    };
    let queued = async || {
        let queued: Value = serde_json::from_str(&begin(false).await).unwrap();
        format!("/v1/responses/{}", queued["id"].as_str().unwrap())
    };
    let status = async |gate: &Toolgate, at: &str| {
        let (code, text) = gate.get(at).await;
        assert_eq!(code, 200, "{text}");
        let object: Value = serde_json::from_str(&text).unwrap();
        object["status"].as_str().unwrap().to_owned()
    };
    // Streamed by the other, from its first event to its last.
    let first = queued().await;
    let (code, events) = two.get(&format!("{first}?stream=true")).await;
    assert!(code == 200 && events.contains("response.completed"), "{events}");
    assert_eq!(one.get(&format!("{first}?stream=true")).await.1, events);
    // Cancelled by the other, and the one that makes it hears of it.
    let second = queued().await;
    assert_eq!(status(&two, &second).await, "queued");
    let (code, text) = two.send(Method::POST, &format!("{second}/cancel"), &[], None).await;
    assert!(code == 200 && text.contains("\"cancelled\""), "{text}");
    until(async || sim.counters().cancels > 0).await;
    assert_eq!(status(&one, &second).await, "cancelled");
    // The process that generated it is gone.
    let third = queued().await;
    assert_eq!(status(&two, &third).await, "queued");
    one.kill();
    until(async || status(&two, &third).await == "failed").await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only valkey"]
async fn valkey_with_tls_and_a_password() {
    let folder = Folder::new();
    make_certificate(folder.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (cert, key) = (file("cert.pem"), file("key.pem"));
    let tls = ["--tls-port", "PORT", "--tls-cert-file", &cert, "--tls-key-file", &key];
    let options = [&tls[..], &["--tls-auth-clients", "no", "--requirepass", "s3cret"]].concat();
    let server = Server::start(&options);
    let sim = Sim::start(SimConfig::scripted(Script::new().text("Yes.").times(0))).await.unwrap();
    let url = format!("rediss://:s3cret@localhost:{}", server.port);
    let trust = [("SSL_CERT_FILE", cert.as_str())];
    let one = Toolgate::start_with(&sim.url(), &url, &trust);
    let two = Toolgate::start_with(&sim.url(), &url, &trust);
    assert_eq!(say(&one, &sim, "a").await, 1);
    assert_eq!(say(&two, &sim, "b").await, 3);
    for wrong in [url.replace("s3cret", "other"), url.replace("rediss", "redis")] {
        let refused = Command::new(env!("CARGO_BIN_EXE_toolgate"))
            .args(["serve", "--listen", "127.0.0.1:0", "--store", &wrong])
            .env("SSL_CERT_FILE", &cert)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && told.contains("cannot keep state"), "{told}");
        assert!(!told.contains("s3cret"), "{told}");
    }
}

fn make_certificate(folder: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}
