//! The input of a body, item by item.

use serde::Deserialize;

use super::wire::Str;
use crate::canon::BadRequest;
use crate::json::{self, Kind, Path, Raw};

/// The items of a body's input; a string is one message of the user's.
pub fn input_items(body: &str) -> Result<Vec<Raw<'_>>, BadRequest> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        input: Option<Raw<'a>>,
    }
    let root = Path::Root;
    let at = root.field("input");
    let body: Body<'_> = json::look(body, &root)?;
    let Some(input) = body.input else { return Ok(Vec::new()) };
    match (input.kind(), input.as_borrowed()) {
        (Kind::String, _) => {
            let mut out = b"{\"type\":\"message\",\"role\":\"user\",\"content\":".to_vec();
            input.write(&mut out);
            out.push(b'}');
            let item = String::from_utf8(out).ok().and_then(Raw::parse);
            Ok(item.into_iter().collect())
        }
        (Kind::Array, Some(array)) => Ok(json::look(array, &at)?),
        _ => Err(at.bad("expected a string or an array of items")),
    }
}

/// Returns the id that an item names, if it is only a reference.
pub fn reference_of(item: &Raw<'_>) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Item<'a> {
        #[serde(rename = "type", borrow)]
        kind: Option<Str<'a>>,
        role: Option<Raw<'a>>,
        id: Option<Str<'a>>,
    }
    let item: Item<'_> = serde_json::from_str(item.get()).ok()?;
    let is_reference = match &item.kind {
        Some(kind) => kind.0 == "item_reference",
        None => item.role.is_none(),
    };
    item.id.filter(|_| is_reference).map(|id| id.0.into_owned())
}
