//! Reads Rust text just far enough to tell code from comments and strings, and to find functions.
//!
//! A full parser would cost a heavy dependency; the checks need only where words stand and where bodies end.

/// One Rust file, with its code separated from its comments and literals.
pub struct Source {
    /// The text as written.
    pub text: String,
    /// The same text, octet for octet, with comments and the insides of literals blanked.
    pub code: String,
    /// For each line (from 0): does it hold a comment?
    comments: Vec<bool>,
    line_starts: Vec<usize>,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of the word `fn`, from 1.
    pub line: usize,
    /// Lines from `fn` to the closing brace, both counted.
    pub length: usize,
    /// Whether a `#[test]` attribute stands above it.
    pub is_test: bool,
    /// Whether it is `pub` without restriction.
    pub is_public: bool,
    /// Where `fn` and the closing brace stand in the text.
    pub range: std::ops::Range<usize>,
}

/// A structure with named fields.
#[derive(Debug, PartialEq, Eq)]
pub struct Structure {
    /// Its name.
    pub name: String,
    /// The line of the word `struct`, from 1.
    pub line: usize,
    /// How many fields it has.
    pub fields: usize,
}

impl Source {
    /// Separates code from comments and literals.
    pub fn new(text: &str) -> Self {
        let mut line_starts = vec![0];
        line_starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        let mut masker =
            Masker { text: text.as_bytes(), out: text.as_bytes().to_vec(), comment_spans: vec![] };
        masker.run();
        let comment_spans = std::mem::take(&mut masker.comment_spans);
        // Only whole literals and comments are blanked, so every remaining character is whole.
        let code = String::from_utf8(masker.out).unwrap_or_default();
        let mut source = Self { text: text.to_owned(), code, comments: vec![], line_starts };
        source.comments = vec![false; source.line_starts.len()];
        for (start, end) in comment_spans {
            for line in source.line_at(start)..=source.line_at(end.saturating_sub(1)) {
                source.comments[line - 1] = true;
            }
        }
        source
    }

    /// The line (from 1) in which an offset stands.
    pub fn line_at(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset)
    }

    /// How many lines carry a comment, and how many carry anything.
    pub fn comment_share(&self) -> (usize, usize) {
        let written = self.text.lines().filter(|line| !line.trim().is_empty()).count();
        (self.comments.iter().filter(|is| **is).count(), written)
    }

    /// Whether the line (from 1) holds nothing but a comment or an attribute.
    pub fn is_comment_or_attribute(&self, line: usize) -> bool {
        let code = self.code_line(line).trim().to_owned();
        (self.comments[line - 1] && code.is_empty()) || code.starts_with("#[") || code.starts_with("#![")
    }

    /// The code of one line (from 1), comments and literals blanked.
    pub fn code_line(&self, line: usize) -> &str {
        slice_line(&self.code, &self.line_starts, line)
    }

    /// One line (from 1) as written.
    pub fn text_line(&self, line: usize) -> &str {
        slice_line(&self.text, &self.line_starts, line)
    }

    /// The offsets at which `word` stands in code as a whole word.
    pub fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        let code = self.code.as_bytes();
        self.code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
            let before = at.checked_sub(1).map(|i| code[i]);
            let after = code.get(at + word.len()).copied();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
    }

    /// Every function that has a body, in order; nested ones are listed too.
    pub fn functions(&self) -> Vec<Function> {
        self.words("fn").filter_map(|at| self.function_at(at)).collect()
    }

    fn function_at(&self, at: usize) -> Option<Function> {
        let code = self.code.as_bytes();
        let mut i = at + 2;
        while code.get(i).is_some_and(u8::is_ascii_whitespace) {
            i += 1;
        }
        let name_start = i;
        while code.get(i).is_some_and(|c| is_word(*c) || *c == b'$' || *c == b'#') {
            i += 1;
        }
        if i == name_start {
            return None; // a function pointer type
        }
        let name = self.code[name_start..i].to_owned();
        let end = matching_end(code, body_start(code, i)?)?;
        let head = self.head_before(at);
        Some(Function {
            name,
            line: self.line_at(at),
            length: self.line_at(end) - self.line_at(at) + 1,
            is_test: head.contains("#[test]") || head.contains("::test]"),
            is_public: head.split_whitespace().any(|word| word == "pub"),
            range: at..end + 1,
        })
    }

    /// Every structure with named fields, in order.
    pub fn structures(&self) -> Vec<Structure> {
        self.words("struct").filter_map(|at| self.structure_at(at)).collect()
    }

    fn structure_at(&self, at: usize) -> Option<Structure> {
        let code = self.code.as_bytes();
        let begin = at + self.code[at..].find(|c: char| c.is_ascii_whitespace())?;
        let name = begin + self.code[begin..].find(|c: char| !c.is_ascii_whitespace())?;
        let length = code[name..].iter().position(|c| !is_word(*c))?;
        let open = body_start(code, name + length)?;
        let fields = fields(&code[open + 1..matching_end(code, open)?]);
        let name = self.code[name..name + length].to_owned();
        Some(Structure { name, line: self.line_at(at), fields })
    }

    /// The attributes and qualifiers that belong to the item at `at`.
    fn head_before(&self, at: usize) -> &str {
        let start = self.code[..at].rfind([';', '{', '}']).map_or(0, |i| i + 1);
        &self.code[start..at]
    }
}

fn slice_line<'a>(text: &'a str, starts: &[usize], line: usize) -> &'a str {
    let end = starts.get(line).copied().unwrap_or(text.len());
    text[starts[line - 1]..end].trim_end_matches(['\n', '\r'])
}

/// Where the body opens, or `None` if the function is only declared.
fn body_start(code: &[u8], from: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (i, c) in code.iter().enumerate().skip(from) {
        match c {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.checked_sub(1)?,
            b'{' if depth == 0 => return Some(i),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Where the brace that opens at `open` closes.
fn matching_end(code: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (i, c) in code.iter().enumerate().skip(open) {
        match c {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(i);
                }
            }
            _ => {}
        }
    }
    None
}

/// The fields between the braces of a structure: each has one colon of its own, behind its name.
fn fields(body: &[u8]) -> usize {
    let (mut depth, mut fields) = (0usize, 0);
    for (i, c) in body.iter().enumerate() {
        match c {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b':' if depth == 0 => {
                let is_path = body.get(i + 1) == Some(&b':') || i > 0 && body[i - 1] == b':';
                fields += usize::from(!is_path);
            }
            _ => {}
        }
    }
    fields
}

/// Whether an octet may stand in an identifier.
pub fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c >= 0x80
}

struct Masker<'a> {
    text: &'a [u8],
    out: Vec<u8>,
    comment_spans: Vec<(usize, usize)>,
}

impl Masker<'_> {
    fn run(&mut self) {
        let mut i = 0;
        while i < self.text.len() {
            i = self.step(i);
        }
    }

    /// Handles what starts at `i` and says where the next thing starts.
    fn step(&mut self, i: usize) -> usize {
        let rest = &self.text[i..];
        if rest.starts_with(b"//") {
            let end = i + rest.iter().position(|c| *c == b'\n').unwrap_or(rest.len());
            return self.comment(i, end);
        }
        if rest.starts_with(b"/*") {
            let end = self.block_comment_end(i);
            return self.comment(i, end);
        }
        let starts_word = i == 0 || !is_word(self.text[i - 1]);
        match rest[0] {
            b'"' => self.string(i),
            b'\'' => self.quote(i),
            b'r' if starts_word => self.raw_string(i, 1).unwrap_or(i + 1),
            b'b' | b'c' if starts_word && rest.get(1) == Some(&b'r') => {
                self.raw_string(i, 2).unwrap_or(i + 2)
            }
            _ => i + 1,
        }
    }

    fn comment(&mut self, start: usize, end: usize) -> usize {
        self.blank(start, end);
        self.comment_spans.push((start, end));
        end
    }

    fn blank(&mut self, start: usize, end: usize) {
        for c in &mut self.out[start..end] {
            if *c != b'\n' {
                *c = b' ';
            }
        }
    }

    fn block_comment_end(&self, start: usize) -> usize {
        let (mut depth, mut i) = (0usize, start);
        while i < self.text.len() {
            let rest = &self.text[i..];
            if rest.starts_with(b"/*") {
                depth += 1;
                i += 2;
            } else if rest.starts_with(b"*/") {
                depth -= 1;
                i += 2;
                if depth == 0 {
                    return i;
                }
            } else {
                i += 1;
            }
        }
        i
    }

    fn string(&mut self, start: usize) -> usize {
        let mut i = start + 1;
        while i < self.text.len() && self.text[i] != b'"' {
            i += if self.text[i] == b'\\' { 2 } else { 1 };
        }
        let end = i.min(self.text.len());
        self.blank(start + 1, end);
        end + 1
    }

    /// `prefix` octets (`r`, `br`, `cr`), then hashes, then the quote; `None` for raw identifiers.
    fn raw_string(&mut self, start: usize, prefix: usize) -> Option<usize> {
        let hashes = self.text[start + prefix..].iter().take_while(|c| **c == b'#').count();
        let open = start + prefix + hashes;
        if self.text.get(open) != Some(&b'"') {
            return None;
        }
        let mut closing = vec![b'"'];
        closing.resize(hashes + 1, b'#');
        let length = self.text[open + 1..].windows(closing.len()).position(|window| window == closing);
        let end = length.map_or(self.text.len(), |length| open + 1 + length);
        self.blank(open + 1, end);
        Some((end + closing.len()).min(self.text.len()))
    }

    /// A character literal is blanked, a lifetime is left.
    fn quote(&mut self, start: usize) -> usize {
        let text = self.text;
        if text.get(start + 1) == Some(&b'\\') {
            // The escaped character itself may be a quote, so the search begins behind it.
            let from = (start + 3).min(text.len());
            let end = text[from..].iter().position(|c| *c == b'\'').map_or(text.len(), |n| from + n);
            self.blank(start + 1, end);
            return end + 1;
        }
        let first = text.get(start + 1).copied().unwrap_or(0);
        let width = match first {
            0..=0x7f => 1,
            0x80..=0xdf => 2,
            0xe0..=0xef => 3,
            _ => 4,
        };
        if text.get(start + 1 + width) == Some(&b'\'') {
            self.blank(start + 1, start + 1 + width);
            return start + 2 + width;
        }
        start + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Source::new(text).code
    }

    #[test]
    fn comments_and_literals_are_blanked_and_lengths_kept() {
        let text =
            "a /* x /* y */ f32 */ b // f32\n\"f32 \\\" {\" r#\"{ \" \"# b\"{\" '{' '\\'' '\\u{7b}' 'é' c";
        let masked = code(text);
        assert_eq!(masked.len(), text.len());
        assert!(!masked.contains("f32") && !masked.contains('{') && !masked.contains('x'), "{masked}");
        assert!(masked.ends_with(" c"), "{masked}");
    }

    #[test]
    fn lifetimes_and_raw_identifiers_stay_code() {
        assert_eq!(code("fn f<'a>(x: &'a str, r#type: u8) {}"), "fn f<'a>(x: &'a str, r#type: u8) {}");
    }

    #[test]
    fn structures_are_found_with_their_fields() {
        let source = Source::new(
            "struct Unit;\nstruct Tuple(u8, std::io::Error);\nstruct One<'a, T: Ord> where T: Copy {\n  \
             #[serde(default = \"a: b\")]\n    a: &'a [T; 2], // no: field\n    \
             b: std::vec::Vec<(u8, T)>,\n    \
             c: fn(at: u8) -> Box<dyn Fn(u8) -> u8>,\n}\nfn f() { let x = S { a: 1 }; }",
        );
        let structures = source.structures();
        let one = |structure: &Structure| (structure.name.clone(), structure.line, structure.fields);
        assert_eq!(structures.iter().map(one).collect::<Vec<_>>(), [("One".to_owned(), 3, 3)]);
    }

    #[test]
    fn functions_are_found_with_their_lengths() {
        let source = Source::new(
            "trait T { fn declared(&self); }\n#[test]\nfn one() {\n    let s = \"}\";\n    // }\n}\n\
             pub fn two(f: fn(u8) -> u8, a: [u8; 3]) -> u8 where u8: Copy { match 1 { _ => 2 } }\n",
        );
        let found: Vec<_> = source.functions();
        let brief: Vec<_> =
            found.iter().map(|f| (f.name.as_str(), f.line, f.length, f.is_test, f.is_public)).collect();
        assert_eq!(brief, [("one", 3, 4, true, false), ("two", 7, 1, false, true)]);
    }

    #[test]
    fn comment_lines_are_counted() {
        let source = Source::new("//! head\n\nfn f() {} // why\n/* a\nb */\nlet x = \"//\";\n");
        assert_eq!(source.comment_share(), (4, 5));
    }

    #[test]
    fn words_are_whole() {
        let source = Source::new("unsafe_code unsafe { } r#unsafe myunsafe unsafe");
        assert_eq!(source.words("unsafe").count(), 3);
    }
}
