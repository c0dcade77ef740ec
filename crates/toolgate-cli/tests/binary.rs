//! The binary as a user starts it.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A command of the binary that listens; it ends with the test.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    /// Starts it on a port that the system chooses, and waits until it says which.
    fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_toolgate"))
            .args(arguments)
            .args(["--listen", "127.0.0.1:0"])
            .env_remove("GEMINI_API_KEY")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (_, address) = line.trim().rsplit_once("http://").unwrap();
        Self { process, address: address.to_owned() }
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
fn r125_a_gateway_before_a_simulator_answers_in_every_dialect() {
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

#[test]
fn what_is_unknown_is_named() {
    let binary = env!("CARGO_BIN_EXE_toolgate");
    let output = Command::new(binary).args(["serve", "--no-such-option"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--no-such-option"), "{said}");
}
