//! A whole answer as one message.

use super::compose::{Composer, Page, member};
use super::request::Echo;
use crate::canon::{Answer, Item};
use crate::dialect::Stamp;
use crate::json::{Text, write};
use crate::seal::Sealer;

/// Writes the answer to `POST /v1/messages` that was not streamed.
pub fn encode_response(answer: &Answer, echo: &Echo, stamp: &Stamp, sealer: &Sealer) -> Vec<u8> {
    let mut ids = stamp.ids.clone();
    let id = format!("msg_{}", ids.token());
    let mut composer = Composer::new(echo.clone(), sealer.clone(), ids);
    let mut out = vec![b'{'];
    member(&mut out, "id", &id);
    out.extend_from_slice(br#","type":"message","role":"assistant""#);
    member(&mut out, "model", &echo.model);
    out.extend_from_slice(b",\"content\":[");
    let page = &mut Content { out: &mut out };
    for item in &answer.items {
        match item {
            Item::Text(text) => composer.text(text, page),
            Item::Thought(text) => composer.thought(text, page),
            Item::Signature { thought, len, signature } => {
                composer.signature(*thought, *len, signature, page);
            }
            Item::Call(call) => composer.call(call, page),
            Item::Media(media) => composer.media(media, page),
            Item::Server(activity) => composer.server(activity, page),
            Item::Grounding(grounding) => composer.grounding(grounding, page),
        }
    }
    composer.finish(page);
    out.push(b']');
    composer.stop(&mut out, &answer.finish);
    out.extend_from_slice(br#","diagnostics":null"#);
    composer.usage(&mut out, &answer.finish.usage);
    out.push(b'}');
    out
}

/// Blocks as elements of an array.
struct Content<'o> {
    out: &'o mut Vec<u8>,
}

impl Content<'_> {
    fn open(&mut self, members: &[u8]) {
        write::comma(self.out);
        self.out.push(b'{');
        self.out.extend_from_slice(members);
    }
}

impl Page for Content<'_> {
    fn open_text(&mut self) {
        self.open(br#""type":"text","citations":null,"text":""#);
    }

    fn text(&mut self, text: &Text<'_>) {
        write::literal(self.out, text.escaped());
    }

    fn close_text(&mut self) {
        self.out.extend_from_slice(b"\"}");
    }

    fn open_thinking(&mut self) {
        self.open(br#""type":"thinking","thinking":""#);
    }

    fn thinking(&mut self, text: &Text<'_>) {
        write::literal(self.out, text.escaped());
    }

    fn close_thinking(&mut self, signature: &str) {
        self.out.push(b'"');
        member(self.out, "signature", signature);
        self.out.push(b'}');
    }

    fn call(&mut self, head: &dyn Fn(&mut Vec<u8>), input: &str) {
        self.open(b"");
        head(self.out);
        self.out.extend_from_slice(b",\"input\":");
        write::compact(self.out, input);
        self.out.push(b'}');
    }

    fn whole(&mut self, members: &dyn Fn(&mut Vec<u8>)) {
        self.open(b"");
        members(self.out);
        self.out.push(b'}');
    }
}
