//! Commands that the server is sent, and what its errors mean.

use bytes::Bytes;
use redis::{ErrorKind, Pipeline, RedisError, ServerError};

use crate::key::{Key, Kind, Owner, OwnerHasher, STAMP_LEN, Stamp};
use crate::now_millis;
use crate::queue::{CallIndex, Change, Write};
use crate::store::{FoundCall, Item};

/// Maximum number of calls under one session and content. The oldest are removed.
const MAX_CALLS: i64 = 16_384;

/// Names of keys in the server.
#[derive(Clone, Debug)]
pub(super) struct Names(OwnerHasher);

impl Names {
    pub(super) fn new(secret: &[u8; 32]) -> Self {
        Self(OwnerHasher::new(secret))
    }

    fn owner(&self, owner: Owner) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0.name(owner)))
    }

    pub(super) fn entry(&self, owner: Owner, kind: Kind, id: &str) -> String {
        format!("toolgate:{}:{}:{id}", self.owner(owner), kind.name())
    }

    pub(super) fn key(&self, key: &Key) -> String {
        self.entry(key.owner, key.kind, &key.id)
    }

    /// The sorted set of calls of a session with the same content.
    pub(super) fn calls(&self, owner: Owner, session: &str, content: &str) -> String {
        format!("toolgate:{}:call:{session}:{content}", self.owner(owner))
    }
}

/// The member of a sorted set that stands for a call.
pub(super) fn member(token: &str, previous: &str) -> String {
    [token, "\n", previous].concat()
}

pub(super) fn found_call(member: &[u8], session: usize, content: usize) -> Option<FoundCall> {
    let (token, previous) = std::str::from_utf8(member).ok()?.split_once('\n')?;
    let (token, previous) = (token.to_owned(), previous.to_owned());
    Some(FoundCall { session, content, token, previous })
}

/// A list item as the server has it: the stamp, then the value.
pub(super) fn encode_item(item: &Item) -> Vec<u8> {
    [item.stamp.as_bytes(), &item.value].concat()
}

pub(super) fn decode_item(bytes: &Bytes) -> Option<Item> {
    let stamp = Stamp::from_bytes(bytes.get(..STAMP_LEN)?)?;
    Some(Item { stamp, value: bytes.slice(STAMP_LEN..) })
}

/// Adds the commands of a write to a pipeline.
pub(super) fn push(pipe: &mut Pipeline, names: &Names, Write { key, change, expires }: &Write) {
    let name = names.key(key);
    let left = expires - now_millis();
    match change {
        Change::Put(value) => push_value(pipe, &name, value, left),
        Change::PutCall(value, index) => {
            push_value(pipe, &name, value, left);
            for session in &index.sessions {
                let set = names.calls(key.owner, session, &index.content);
                push_call(pipe, &set, &key.id, index, left);
            }
        }
        Change::Append(_) if left <= 0 => {
            pipe.cmd("DEL").arg(name).ignore();
        }
        Change::Append(items) => {
            let push = pipe.cmd("RPUSH").arg(&name);
            for item in items {
                push.arg(encode_item(item));
            }
            push.ignore();
            pipe.cmd("PEXPIRE").arg(name).arg(left).ignore();
        }
        Change::Erase(stamp) => {
            pipe.cmd("EVAL").arg(ERASE).arg(1).arg(name).arg(stamp.as_bytes()).ignore();
        }
        Change::Delete => {
            pipe.cmd("DEL").arg(name).ignore();
        }
    }
}

/// Replaces the items of a list that begin with a stamp by the stamp.
const ERASE: &str = "local all = redis.call('LRANGE', KEYS[1], 0, -1)
for at, item in ipairs(all) do
  if string.sub(item, 1, #ARGV[1]) == ARGV[1] then redis.call('LSET', KEYS[1], at - 1, ARGV[1]) end
end
return #all";

fn push_value(pipe: &mut Pipeline, name: &str, value: &[u8], left: i64) {
    // The server refuses a lifetime of nothing.
    if left <= 0 {
        pipe.cmd("DEL").arg(name).ignore();
    } else {
        pipe.cmd("SET").arg(name).arg(value).arg("PX").arg(left).ignore();
    }
}

fn push_call(pipe: &mut Pipeline, set: &str, token: &str, index: &CallIndex, left: i64) {
    let member = member(token, &index.previous);
    if left <= 0 {
        pipe.cmd("ZREM").arg(set).arg(member).ignore();
        return;
    }
    pipe.cmd("ZADD").arg(set).arg(index.seq).arg(member).ignore();
    pipe.cmd("ZREMRANGEBYRANK").arg(set).arg(0).arg(-MAX_CALLS - 1).ignore();
    pipe.cmd("PEXPIRE").arg(set).arg(left).ignore();
}

/// Whether a command that failed may succeed later.
pub(super) fn is_temporary(error: &RedisError) -> bool {
    match error.clone().into_server_errors() {
        Some(causes) => {
            let is_temporary =
                |cause: &ServerError| is_temporary_code(cause.code(), cause.details());
            causes.iter().any(|(_, cause)| is_temporary(cause))
        }
        None => !matches!(error.kind(), ErrorKind::Extension | ErrorKind::UnexpectedReturnType),
    }
}

/// Whether a server that refuses with this code may accept later: it starts, fails over, waits for
/// replicas, or for an operator to make room.
fn is_temporary_code(code: &str, details: Option<&str>) -> bool {
    match code {
        "BUSY" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "MISCONF" | "NOREPLICAS" | "OOM"
        | "READONLY" | "TRYAGAIN" => true,
        // A transaction that was refused as a whole names the cause in its message.
        "EXECABORT" => {
            let cause = details.and_then(|details| details.rsplit_once("because of: "));
            let code = cause.and_then(|(_, cause)| cause.split_whitespace().next());
            code.is_some_and(|code| is_temporary_code(code, None))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_refusals_are_told_from_permanent_ones() {
        let because = |cause: &str| format!("Transaction discarded because of: {cause}");
        let (readonly, wrong) = (because("READONLY You can't write."), because("ERR wrong number"));
        let cases = [
            ("READONLY", "You can't write against a read only replica.", true),
            ("NOREPLICAS", "Not enough good replicas to write.", true),
            ("OOM", "command not allowed when used memory > 'maxmemory'.", true),
            ("MISCONF", "Errors writing to the AOF file: No space left on device", true),
            ("LOADING", "the dataset", true),
            ("EXECABORT", readonly.as_str(), true),
            ("EXECABORT", wrong.as_str(), false),
            ("EXECABORT", "Transaction discarded because of previous errors.", false),
            ("WRONGTYPE", "Operation against a key holding the wrong kind of value", false),
            ("NOPERM", "User x has no permissions", false),
        ];
        for (code, details, want) in cases {
            assert_eq!(is_temporary_code(code, Some(details)), want, "{code} {details}");
        }
        let own = RedisError::from((ErrorKind::UnexpectedReturnType, "not a number"));
        let gone = RedisError::from(std::io::Error::other("gone"));
        assert!(!is_temporary(&own) && is_temporary(&gone));
    }
}
