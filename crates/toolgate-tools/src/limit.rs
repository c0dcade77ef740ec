//! Bounds of results: text and JSON are cut in the middle, media is replaced by a line of text.

use crate::{Content, Limits, Output};

/// Applies the limits of a tool to its result.
pub(crate) fn apply(output: &mut Output, limits: &Limits) {
    cut_media(output, limits.max_media_bytes);
    cut_text(output, limits.max_result_bytes);
}

fn cut_media(output: &mut Output, limit: usize) {
    let mut left = limit;
    for block in &mut output.content {
        let bytes = block.media_bytes();
        if bytes == 0 {
            continue;
        }
        if bytes <= left {
            left -= bytes;
            continue;
        }
        let mime_type = block.mime_type().unwrap_or("application/octet-stream");
        let text = format!("[{mime_type}, {} kB: not shown]", bytes / 4 * 3 / 1000);
        output.cut_bytes += bytes;
        *block = Content::Text(text);
    }
}

fn cut_text(output: &mut Output, limit: usize) {
    let mut left = limit;
    for block in &mut output.content {
        let bytes = block.text_bytes();
        if bytes <= left {
            left -= bytes;
            continue;
        }
        let text = match block {
            Content::Text(text) | Content::TextResource { text, .. } => text,
            Content::Unknown(value) => {
                let text = value.get().to_owned();
                *block = Content::Text(text);
                let Content::Text(text) = block else { continue };
                text
            }
            Content::ResourceLink { .. } => {
                output.cut_bytes += bytes;
                *block = Content::Text("[resource link: left out]".to_owned());
                continue;
            }
            Content::Image { .. } | Content::Audio { .. } | Content::BlobResource { .. } => {
                continue;
            }
        };
        output.cut_bytes += cut_middle(text, left);
        left = 0;
    }
    let Some(structured) = &output.structured else { return };
    if structured.get().len() > left {
        // Half a JSON value is no JSON value. It becomes text, if it is not in the text already.
        let mut text = structured.get().to_owned();
        output.structured = None;
        if output.content.is_empty() {
            output.cut_bytes += cut_middle(&mut text, left);
            output.content.push(Content::Text(text));
        } else {
            output.cut_bytes += text.len();
        }
    }
}

/// Keeps the first 60 % and the last 40 % of `limit` bytes, and returns how many bytes were left out.
fn cut_middle(text: &mut String, limit: usize) -> usize {
    let mut head = limit / 5 * 3;
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len().saturating_sub(limit - limit / 5 * 3);
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    if tail <= head {
        return 0;
    }
    let cut = tail - head;
    text.replace_range(head..tail, &format!("\n[… {cut} bytes left out …]\n"));
    cut
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn limits(text: usize, media: usize) -> Limits {
        Limits { max_result_bytes: text, max_media_bytes: media, ..Limits::default() }
    }

    #[test]
    fn t33_large_results_are_cut_in_the_middle() {
        let mut output = Output::text(format!("start{}end", "ü".repeat(5000)));
        apply(&mut output, &limits(100, 100));
        let [Content::Text(text)] = &output.content[..] else { panic!("one text") };
        assert!(text.starts_with("start") && text.ends_with("end"), "{text}");
        assert!(text.len() < 200 && output.cut_bytes > 9000);
        assert!(text.contains(&format!("[… {} bytes left out …]", output.cut_bytes)));
    }

    #[test]
    fn t33_cut_json_becomes_text() {
        let value = RawValue::from_string(format!("[{}1]", "1,".repeat(500))).unwrap();
        let mut output = Output::json(value.clone());
        apply(&mut output, &limits(100, 100));
        assert!(output.structured.is_none());
        assert!(matches!(&output.content[0], Content::Text(text) if text.starts_with("[1,1")));
        let mut beside =
            Output { content: vec![Content::Text("short".into())], ..Output::json(value) };
        apply(&mut beside, &limits(100, 100));
        assert_eq!((beside.content.len(), beside.cut_bytes), (1, 1003));
    }

    #[test]
    fn large_media_becomes_a_line() {
        let image =
            |bytes| Content::Image { data: "A".repeat(bytes), mime_type: "image/png".into() };
        let mut output = Output { content: vec![image(60), image(4000)], ..Output::default() };
        apply(&mut output, &limits(100, 100));
        assert!(matches!(&output.content[0], Content::Image { .. }));
        assert!(
            matches!(&output.content[1], Content::Text(text) if text == "[image/png, 3 kB: not shown]")
        );
    }
}
