//! What is to be written to a file, and how it looks until it is in its place.

use super::Kind;
use crate::auth::Owner;

/// Where something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct At<'c> {
    pub(super) owner: Owner,
    pub(super) kind: Kind,
    pub(super) id: &'c str,
}

/// Something that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change<'c> {
    pub(super) at: At<'c>,
    pub(super) what: What<'c>,
    /// Until when it is kept, in milliseconds since 1970.
    pub(super) until: i64,
}

/// What is done there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What<'c> {
    /// It takes the place of what was there, and these maps have these notes of it.
    Put(&'c [u8], Vec<(&'c str, &'c str)>),
    /// These are added to a list.
    Append(Vec<&'c [u8]>),
}

/// The changes that [`Change::write`] has written one behind the other.
pub(super) fn changes(mut log: &[u8]) -> impl Iterator<Item = Change<'_>> {
    std::iter::from_fn(move || Change::read(&mut log))
}

impl<'c> Change<'c> {
    /// Writes it so that [`Change::read`] reads it. All numbers are little endian.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let (what, count) = match &self.what {
            What::Put(_, notes) => (b'p', 1 + 2 * notes.len()),
            What::Append(values) => (b'a', values.len()),
        };
        out.push(what);
        out.extend_from_slice(self.at.owner.bytes());
        out.extend_from_slice(&self.until.to_le_bytes());
        write_bytes(out, self.at.kind.name().as_bytes());
        write_bytes(out, self.at.id.as_bytes());
        out.extend_from_slice(&(count as u32).to_le_bytes());
        match &self.what {
            What::Put(value, notes) => {
                write_bytes(out, value);
                for part in notes.iter().flat_map(|(map, note)| [map, note]) {
                    write_bytes(out, part.as_bytes());
                }
            }
            What::Append(values) => values.iter().for_each(|value| write_bytes(out, value)),
        }
    }

    /// Takes one from the front; `None` where there is none.
    pub(super) fn read(from: &mut &'c [u8]) -> Option<Self> {
        let [what] = read_array(from)?;
        let owner = Owner::kept(read_array(from)?);
        let until = i64::from_le_bytes(read_array(from)?);
        let kind = Kind::named(read_text(from)?)?;
        let id = read_text(from)?;
        let count = u32::from_le_bytes(read_array(from)?);
        let what = match what {
            b'p' if count % 2 == 1 => {
                let value = read_bytes(from)?;
                let note = |_| Some((read_text(from)?, read_text(from)?));
                What::Put(value, (0..count / 2).map(note).collect::<Option<_>>()?)
            }
            b'a' => What::Append((0..count).map(|_| read_bytes(from)).collect::<Option<_>>()?),
            _ => return None,
        };
        Some(Self { at: At { owner, kind, id }, what, until })
    }
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn read_bytes<'b>(from: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = u32::from_le_bytes(read_array(from)?);
    let (bytes, rest) = from.split_at_checked(length as usize)?;
    *from = rest;
    Some(bytes)
}

fn read_text<'b>(from: &mut &'b [u8]) -> Option<&'b str> {
    std::str::from_utf8(read_bytes(from)?).ok()
}

fn read_array<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (array, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*array)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What older versions have left for maps does not hide what they have left behind it.
    #[test]
    fn older_changes_are_read() {
        let mut log = Vec::new();
        for (kind, id) in [(Kind::Map, "m/a"), (Kind::Answer, "b")] {
            let at = At { owner: Owner::of("o"), kind, id };
            Change { at, what: What::Put(b"1 t", Vec::new()), until: 7 }.write(&mut log);
        }
        let (now, then) = (b"\x03\0\0\0map", b"\x07\0\0\0content");
        let start = log.windows(now.len()).position(|part| part == now).unwrap();
        log.splice(start..start + now.len(), *then);
        let ids: Vec<&str> = changes(&log).map(|change| change.at.id).collect();
        assert_eq!(ids, ["m/a", "b"]);
    }
}
