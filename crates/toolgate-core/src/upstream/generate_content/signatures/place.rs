//! Putting what clients kept for us where it belongs.

use std::collections::{BTreeMap, BTreeSet};

use crate::canon::{
    Call, Envelope, Loss, LossCode, Losses, Part, Request, Role, Sealed, Signature, Turn,
    call_token,
};
use crate::json::Text;

/// A part and the turn that it is in.
type Placed<'a> = (usize, Part<'a>);

/// A signature of a call, and where its envelope stood.
struct Carried<'a> {
    place: usize,
    turn: usize,
    token: String,
    signature: Signature<'a>,
}

impl Request<'_> {
    /// Takes signatures out of their envelopes and gives them to the parts that they belong to.
    ///
    /// A call is found by its id; where the client has changed the ids, by its place behind the
    /// envelope. A signature of text signs the text before it, of which exactly the signed bytes
    /// become a part of their own. Whole parts ([`Sealed::Part`]) stay sealed: only the encoder
    /// knows whether the target is their issuer. What belongs to nothing any more is a loss.
    pub fn place_signatures(&mut self) -> Losses {
        let mut losses = Losses::new();
        if !self.has_loose_signatures() {
            return losses;
        }
        let tokens: BTreeSet<String> =
            self.calls().map(|call| call_token(&call.id).to_owned()).collect();
        let mut seen: BTreeSet<String> = self
            .turns
            .iter()
            .flat_map(|turn| &turn.parts)
            .filter_map(signature_of)
            .map(|signature| signature.expose().to_owned())
            .collect();
        let mut elsewhere = Vec::new();
        let mut start = 0;
        while start < self.turns.len() {
            let role = self.turns[start].role;
            let mut end = start + 1;
            while self.turns.get(end).is_some_and(|turn| turn.role == role && role == Role::Model) {
                end += 1;
            }
            let group = &mut self.turns[start..end];
            place_in(group, start, &tokens, &mut seen, &mut elsewhere, &mut losses);
            start = end;
        }
        place_elsewhere(&mut self.turns, elsewhere, &mut losses);
        losses
    }

    /// Whether [`place_signatures`](Self::place_signatures) has something to do.
    pub(in crate::upstream::generate_content) fn has_loose_signatures(&self) -> bool {
        self.turns.iter().flat_map(|turn| &turn.parts).any(|part| match part {
            Part::Sealed(Envelope { on, .. }) => !matches!(on, Sealed::Part(_)),
            Part::Text { .. }
            | Part::Thought { .. }
            | Part::Media(_)
            | Part::Call(_)
            | Part::Result(_)
            | Part::Gemini(_) => false,
        })
    }
}

/// The signature that a part already carries.
fn signature_of<'r>(part: &'r Part<'_>) -> Option<&'r Signature<'r>> {
    match part {
        Part::Text { signature, .. } | Part::Thought { signature, .. } => signature.as_ref(),
        Part::Call(call) => call.signature.as_ref(),
        Part::Media(_) | Part::Result(_) | Part::Sealed(_) | Part::Gemini(_) => None,
    }
}

/// Places the envelopes of one turn, or of several that the model spoke in a row.
fn place_in<'a>(
    group: &mut [Turn<'a>],
    first: usize,
    tokens: &BTreeSet<String>,
    seen: &mut BTreeSet<String>,
    elsewhere: &mut Vec<Carried<'a>>,
    losses: &mut Losses,
) {
    let mut parts: Vec<Placed<'a>> = Vec::new();
    let mut calls = Vec::new();
    let mut ahead = Vec::new();
    for (index, turn) in group.iter_mut().enumerate() {
        for part in std::mem::take(&mut turn.parts) {
            let Part::Sealed(Envelope { on, issuer }) = part else {
                parts.push((index, part));
                continue;
            };
            let (kind, len, signature) = match on {
                Sealed::Part(_) => {
                    parts.push((index, Part::Sealed(Envelope { on, issuer })));
                    continue;
                }
                Sealed::Call { token, signature } => {
                    if seen.insert(signature.expose().to_owned()) {
                        let (place, token) = (parts.len(), token.into_owned());
                        calls.push(Carried { place, turn: index, token, signature });
                    }
                    continue;
                }
                Sealed::Text { len, signature } => (Words::Text, len, signature),
                Sealed::Thought { len, signature } => (Words::Thought, len, signature),
            };
            if !seen.insert(signature.expose().to_owned()) {
                continue;
            }
            let end = parts.len();
            match run_before(&parts, end, kind) {
                _ if len == 0 => parts.push((index, kind.part(Text::EMPTY, Some(signature)))),
                Some(run) => sign_run(&mut parts, run, kind, len, signature),
                None => ahead.push((end, index, kind, len, signature)),
            }
        }
    }
    // Some clients move unknown blocks to the front of the turn.
    for (place, turn, kind, len, signature) in ahead {
        let text = (place..parts.len()).find(|&at| kind.unsigned(&parts[at].1).is_some());
        match text {
            Some(start) => {
                let mut end = start + 1;
                while parts.get(end).is_some_and(|(_, part)| kind.unsigned(part).is_some()) {
                    end += 1;
                }
                sign_run(&mut parts, start..end, kind, len, signature);
            }
            // A summary may be withheld from the client; what counts is the signature.
            None if kind == Words::Thought => {
                let place = place.min(parts.len());
                parts.insert(place, (turn, kind.part(Text::EMPTY, Some(signature))));
            }
            None => losses.add_with(LossCode::PartDropped, || lost(first + turn)),
        }
    }
    for carried in calls {
        place_call(&mut parts, carried, first, tokens, elsewhere, losses);
    }
    for (index, part) in parts {
        group[index].parts.push(part);
    }
}

fn place_call<'a>(
    parts: &mut [Placed<'a>],
    carried: Carried<'a>,
    first: usize,
    tokens: &BTreeSet<String>,
    elsewhere: &mut Vec<Carried<'a>>,
    losses: &mut Losses,
) {
    let exact = |call: &Call<'_>| call_token(&call.id) == carried.token;
    let alike = |call: &Call<'_>| {
        let (theirs, ours) = (plain(call_token(&call.id)), plain(&carried.token));
        let shorter = theirs.len().min(ours.len());
        shorter >= 8 && (theirs.starts_with(&ours) || ours.starts_with(&theirs))
    };
    // A call that bears an id of ours is known not to be the one.
    let unnamed = |call: &Call<'_>| !call_token(&call.id).starts_with("tg");
    let find = |parts: &[Placed<'a>], from: usize, wanted: &dyn Fn(&Call<'_>) -> bool| {
        parts.iter().enumerate().skip(from).find_map(|(at, (_, part))| match part {
            Part::Call(call) if call.signature.is_none() && wanted(call) => Some(at),
            Part::Call(_)
            | Part::Text { .. }
            | Part::Thought { .. }
            | Part::Media(_)
            | Part::Result(_)
            | Part::Sealed(_)
            | Part::Gemini(_) => None,
        })
    };
    let mut found = find(parts, 0, &exact);
    if found.is_none() && tokens.contains(&carried.token) {
        elsewhere.push(Carried { turn: first + carried.turn, ..carried });
        return;
    }
    found = found
        .or_else(|| find(parts, 0, &alike))
        .or_else(|| find(parts, carried.place.min(parts.len()), &unnamed));
    match found.map(|at| &mut parts[at].1) {
        Some(Part::Call(call)) => call.signature = Some(carried.signature),
        _ => losses.add_with(LossCode::PartDropped, || lost(first + carried.turn)),
    }
}

/// The client moved an envelope into another turn than its call's.
fn place_elsewhere<'a>(turns: &mut [Turn<'a>], carried: Vec<Carried<'a>>, losses: &mut Losses) {
    if carried.is_empty() {
        return;
    }
    let mut unsigned: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (at, turn) in turns.iter().enumerate() {
        for (place, part) in turn.parts.iter().enumerate() {
            if let Part::Call(call) = part
                && call.signature.is_none()
            {
                unsigned.insert(call_token(&call.id).to_owned(), (at, place));
            }
        }
    }
    for Carried { turn, token, signature, .. } in carried {
        let part = unsigned.remove(&token).map(|(at, place)| &mut turns[at].parts[place]);
        match part {
            Some(Part::Call(call)) => call.signature = Some(signature),
            // The call has one already: its own comes first.
            _ => losses.add_with(LossCode::PartDropped, || lost(turn)),
        }
    }
}

fn lost(turn: usize) -> Loss {
    Loss {
        at: format!("turns[{turn}]"),
        code: LossCode::PartDropped,
        detail: "a signature that the client kept belongs to nothing in this conversation any more"
            .to_owned(),
        tool: None,
    }
}

/// An id without what clients change in ids: case and signs.
pub(in crate::upstream::generate_content) fn plain(id: &str) -> String {
    id.chars().filter(char::is_ascii_alphanumeric).map(|it| it.to_ascii_lowercase()).collect()
}

/// What sort of words a signature is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    Text,
    Thought,
}

impl Words {
    fn part<'a>(self, text: Text<'a>, signature: Option<Signature<'a>>) -> Part<'a> {
        match self {
            Self::Text => Part::Text { text, signature },
            Self::Thought => Part::Thought { text, signature },
        }
    }

    /// The words of a part of this sort that is not signed yet.
    fn unsigned<'r, 'a>(self, part: &'r Part<'a>) -> Option<&'r Text<'a>> {
        match (self, part) {
            (Self::Text, Part::Text { text, signature: None })
            | (Self::Thought, Part::Thought { text, signature: None }) => Some(text),
            _ => None,
        }
    }
}

/// The unsigned words that end just before `end`. Between them and the envelope may stand empty
/// thoughts, in which some dialects carry envelopes.
fn run_before(parts: &[Placed<'_>], end: usize, kind: Words) -> Option<std::ops::Range<usize>> {
    let passed = |part: &Part<'_>| match kind {
        Words::Text => Words::Thought.unsigned(part).is_some(),
        Words::Thought => false,
    };
    let mut end = end;
    while end > 0 && passed(&parts[end - 1].1) {
        end -= 1;
    }
    let mut start = end;
    while start > 0 && kind.unsigned(&parts[start - 1].1).is_some() {
        start -= 1;
    }
    (start < end).then_some(start..end)
}

/// Makes the last `len` bytes of the run one part, signed. Where the client has shortened the
/// text, all of it.
fn sign_run<'a>(
    parts: &mut Vec<Placed<'a>>,
    run: std::ops::Range<usize>,
    kind: Words,
    len: usize,
    signature: Signature<'a>,
) {
    let mut start = run.end;
    let mut missing = len;
    let mut tail: Vec<String> = Vec::new();
    while start > run.start && missing > 0 {
        start -= 1;
        let Some(text) = kind.unsigned(&parts[start].1) else { break };
        let decoded = text.decode();
        if tail.is_empty() && (decoded.len() == len || (start == run.start && decoded.len() < len))
        {
            // The usual case: the part is signed as it stands.
            if let Part::Text { signature: place, .. } | Part::Thought { signature: place, .. } =
                &mut parts[start].1
            {
                *place = Some(signature);
            }
            return;
        }
        let mut cut = decoded.len().saturating_sub(missing);
        while !decoded.is_char_boundary(cut) {
            cut -= 1;
        }
        missing = missing.saturating_sub(decoded.len() - cut);
        let (head, end) = decoded.split_at(cut);
        let (head, end) = (Text::new(head), end.to_owned());
        if cut > 0 {
            parts[start].1 = kind.part(head, None);
            start += 1;
            missing = 0;
        }
        tail.push(end);
    }
    let turn = parts.get(run.end - 1).map_or(0, |(turn, _)| *turn);
    let signed: String = tail.iter().rev().map(String::as_str).collect();
    let signed = (turn, kind.part(Text::new(&signed), Some(signature)));
    parts.splice(start..run.end, [signed]);
}
