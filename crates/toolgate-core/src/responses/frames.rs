//! Events on the wire.

use crate::json::write;

/// How events are put on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events: `event:` and `data:` lines, and an empty one.
    #[default]
    Sse,
    /// One JSON object a line: each line is a WebSocket message.
    Messages,
}

/// Numbers events and puts them on the wire.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    framing: Option<Framing>,
    /// The lane of a WebSocket that the events belong to.
    stream_id: Option<String>,
    next: u64,
}

impl Frames {
    /// Events are numbered from 0.
    pub(super) fn new(framing: Framing, stream_id: Option<String>) -> Self {
        Self { framing: Some(framing), stream_id, next: 0 }
    }

    /// The same from another number on.
    pub(super) fn numbered_from(self, next: u64) -> Self {
        Self { next, ..self }
    }

    /// No events at all: only the items count.
    pub(super) fn silent() -> Self {
        Self { framing: None, stream_id: None, next: 0 }
    }

    pub(super) fn set_framing(&mut self, framing: Framing) {
        self.framing = Some(framing);
    }

    /// Writes one event; `fields` writes its members after `type` and `sequence_number`.
    pub(super) fn event(
        &mut self,
        out: &mut Vec<u8>,
        kind: &str,
        fields: impl FnOnce(&mut Vec<u8>),
    ) {
        let Some(framing) = self.framing else { return };
        if framing == Framing::Sse {
            out.extend_from_slice(b"event: ");
            out.extend_from_slice(kind.as_bytes());
            out.extend_from_slice(b"\ndata: ");
        }
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\",\"sequence_number\":");
        write::integer(out, self.next);
        self.next = self.next.saturating_add(1);
        if let Some(stream_id) = &self.stream_id {
            member(out, "stream_id", stream_id);
        }
        fields(out);
        out.extend_from_slice(match framing {
            Framing::Sse => b"}\n\n".as_slice(),
            Framing::Messages => b"}\n".as_slice(),
        });
    }
}

/// Writes `,"name":"value"`.
pub(super) fn member(out: &mut Vec<u8>, name: &str, value: &str) {
    write::key(out, name);
    write::string(out, value);
}

/// Writes `,"name":number`.
pub(super) fn number(out: &mut Vec<u8>, name: &str, value: impl Into<i128>) {
    write::key(out, name);
    write::integer(out, value);
}
