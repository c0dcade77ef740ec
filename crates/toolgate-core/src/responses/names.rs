//! Ids: a response's, and those of its items, which are named after it.
//!
//! ```text
//! resp_0aB…   the response: `resp_` and a long token
//! msg_0aB…o1  the first item of its output
//! ```

use crate::canon::{IdGen, LONG_TOKEN};

/// Names a response and its items.
#[derive(Clone, Debug)]
pub(super) struct Names {
    token: String,
    items: u64,
}

impl Names {
    pub(super) fn new(ids: &mut IdGen) -> Self {
        Self { token: ids.long_token(), items: 0 }
    }

    /// The response's.
    pub(super) fn response(&self) -> String {
        ["resp_", &self.token].concat()
    }

    /// The next item's.
    pub(super) fn item(&mut self, prefix: &str) -> String {
        self.items += 1;
        format!("{prefix}_{}o{}", self.token, self.items)
    }
}

/// The id of the response that an item belongs to, if the item's id is one of ours.
///
/// ```
/// use toolgate_core::responses::response_of;
///
/// assert_eq!(response_of("msg_0123456789abcdefghijo1").unwrap(), "resp_0123456789abcdefghij");
/// assert_eq!(response_of("msg_1"), None);
/// ```
pub fn response_of(item: &str) -> Option<String> {
    let (_, name) = item.split_once('_')?;
    let token = name.get(..LONG_TOKEN)?;
    let is_token = token.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_token.then(|| ["resp_", token].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_lead_to_their_response() {
        for ids in [IdGen::new(1), IdGen::new(1).at(1_900_000_000_000)] {
            let mut names = Names::new(&mut ids.clone());
            let items = ["msg", "rs", "fc"].map(|prefix| names.item(prefix));
            for item in &items {
                assert_eq!(response_of(item).as_deref(), Some(&*names.response()), "{item}");
                assert!(item.len() <= 64, "{item}");
            }
            assert_ne!(items[0][4..], items[1][3..]);
        }
        for other in ["", "msg", "msg_", "msg_0123456789abcdef-hijo1", "rs_ääääääääääääääääääää"]
        {
            assert_eq!(response_of(other), None, "{other}");
        }
    }
}
