//! Lists, a page at a time.

use toolgate_core::json::write;

use super::endpoints::{decoded, wrong};
use crate::sessions::{SessionError, id_of};

/// Which page is wanted.
#[derive(Debug)]
pub(super) struct Page {
    limit: usize,
    after: Option<String>,
    ascending: bool,
}

/// The value of a query's parameter.
pub(in crate::api) fn parameter<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

impl Page {
    /// Reads a query. The default order is newest first.
    pub(super) fn new(query: &str) -> Result<Self, SessionError> {
        let limit = match parameter(query, "limit").map(str::parse) {
            None => 20,
            Some(Ok(limit @ 1..=100)) => limit,
            Some(_) => return Err(wrong("limit: must be 1 to 100")),
        };
        let ascending = match parameter(query, "order") {
            None | Some("desc") => false,
            Some("asc") => true,
            Some(_) => return Err(wrong("order: must be asc or desc")),
        };
        let after = parameter(query, "after").map(|id| decoded(&id.replace('+', " ")));
        Ok(Self { limit, after, ascending })
    }

    /// The page of `items`, which are given oldest first.
    pub(super) fn of(&self, mut items: Vec<String>) -> Result<Vec<u8>, SessionError> {
        if !self.ascending {
            items.reverse();
        }
        let start = match &self.after {
            None => 0,
            Some(after) => {
                let at = items.iter().rposition(|item| id_of(item).as_deref() == Some(after));
                1 + at.ok_or_else(|| wrong(format!("after: there is no item '{after}'")))?
            }
        };
        let end = (start + self.limit).min(items.len());
        Ok(list(&items[start..end], end < items.len()))
    }
}

/// A list object.
pub(super) fn list(items: &[String], has_more: bool) -> Vec<u8> {
    let mut out = b"{\"object\":\"list\",\"data\":[".to_vec();
    for item in items {
        write::comma(&mut out);
        out.extend_from_slice(item.as_bytes());
    }
    out.push(b']');
    for (name, item) in [("first_id", items.first()), ("last_id", items.last())] {
        write::key(&mut out, name);
        match item.and_then(|item| id_of(item)) {
            Some(id) => write::string(&mut out, &id),
            None => out.extend_from_slice(b"null"),
        }
    }
    write::key(&mut out, "has_more");
    out.extend_from_slice(if has_more { b"true}" } else { b"false}" });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, want: &str) {
        let items = ["a", "b", "c"].map(|id| format!("{{\"id\":\"{id}\"}}")).to_vec();
        let page = Page::new(query).and_then(|page| page.of(items));
        let shown = page.map(|page| String::from_utf8(page).unwrap());
        let ids = shown.map(|page| {
            let page: serde_json::Value = serde_json::from_str(&page).unwrap();
            let ids: String = page["data"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it["id"].as_str().unwrap())
                .collect();
            format!("{ids}{}", if page["has_more"] == true { "…" } else { "" })
        });
        assert_eq!(ids.unwrap_or_else(|_| "refused".to_owned()), want, "{query}");
    }

    #[test]
    fn pages_follow_each_other() {
        check("", "cba");
        check("order=asc", "abc");
        check("order=asc&limit=2", "ab…");
        check("order=asc&limit=2&after=b", "c");
        check("after=b&x=1", "a");
        check("after=%62", "a");
        check("limit=0", "refused");
        check("limit=101", "refused");
        check("order=up", "refused");
        check("after=z", "refused");
    }
}
