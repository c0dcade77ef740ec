//! The round limit, and the behaviour at the limit.

use serde_json::json;
use toolgate::{AtLimit, Automatic, Request, Toolset, Unfinished};
use toolgate_sim::Script;

use crate::support::{clean, client, last};
use crate::tools::clock;

/// A model that calls `calls` times, then answers.
fn caller(calls: usize) -> Script {
    let script = (0..calls).fold(Script::new(), |it, _| it.call("clock", json!({})).finish());
    script.text("Noon.")
}

/// Outcome: the text or the number of open calls, the number of requests, the turns of history.
async fn ask(calls: usize, automatic: Automatic, streamed: bool) -> (String, u64, usize) {
    let (client, sim) = client(caller(calls));
    let tools = Toolset::new().with::<clock>();
    let request = Request::new("Go.").tools(tools).automatic(automatic);
    let response = match streamed {
        true => client.stream(request).finish().await.unwrap(),
        false => client.generate(request).await.unwrap(),
    };
    let requests = sim.counters().requests;
    clean(&sim, requests);
    if response.has_calls() {
        assert_eq!(response.unfinished(), Some(Unfinished::Limit));
        (format!("{} open", response.calls().len()), requests, response.history().len())
    } else {
        (response.text(), requests, response.history().len())
    }
}

#[tokio::test]
async fn the_disable_and_budget_matrix() {
    let budget = |max_rounds| Automatic { max_rounds, ..Automatic::default() };
    // (number of calls by the model, settings, outcome, requests, turns of history)
    for (calls, automatic, want, requests, turns) in [
        (1, Automatic::OFF, "1 open", 1, 0),
        (1, budget(0), "1 open", 1, 0),
        // The only request is answered with a call, which is not run.
        (1, budget(1), "1 open", 1, 0),
        (1, budget(2), "Noon.", 2, 3),
        (2, budget(2), "1 open", 2, 2),
        (4, budget(5), "Noon.", 5, 9),
        (9, Automatic::default(), "Noon.", 10, 19),
        (10, Automatic::default(), "1 open", 10, 18),
        (19, budget(20), "Noon.", 20, 39),
        (0, Automatic::OFF, "Noon.", 1, 1),
        (0, budget(1), "Noon.", 1, 1),
    ] {
        for streamed in [false, true] {
            let (text, sent, history) = ask(calls, automatic, streamed).await;
            assert_eq!(
                (text.as_str(), sent, history),
                (want, requests, turns),
                "{calls} {automatic:?}"
            );
        }
    }
}

#[tokio::test]
async fn one_last_round_without_tools() {
    let automatic =
        Automatic { max_rounds: 2, at_limit: AtLimit::LastAnswer, ..Automatic::default() };
    for streamed in [false, true] {
        let (client, sim) = client(caller(2));
        let tools = Toolset::new().with::<clock>();
        let request = Request::new("Go.").tools(tools).automatic(automatic);
        let response = match streamed {
            true => client.stream(request).finish().await.unwrap(),
            false => client.generate(request).await.unwrap(),
        };
        assert_eq!(response.text(), "Noon.");
        clean(&sim, 3);
        let config = |at: usize| {
            sim.requests()[at].json()["toolConfig"]["functionCallingConfig"]["mode"].clone()
        };
        assert_eq!(config(2), "NONE");
        assert_ne!(config(1), "NONE");
        assert_eq!(last(&sim)["tools"][0]["functionDeclarations"][0]["name"], "clock");
    }
}

#[tokio::test]
async fn calls_that_came_back_at_the_limit_can_be_answered() {
    let (client, sim) = client(caller(1));
    let automatic = Automatic { max_rounds: 1, ..Automatic::default() };
    let tools = Toolset::new().with::<clock>();
    let request = Request::new("Go.").tools(tools).automatic(automatic);
    let response = client.generate(request).await.unwrap();
    let results: Vec<_> = response.calls().iter().map(|call| call.succeed("midnight")).collect();
    let response = response.resume(results).await.unwrap();
    assert_eq!(response.text(), "Noon.");
    clean(&sim, 2);
}
