//! Words in lines, for figures and terminals.

/// The words in lines of at most so many characters: the first line, and all others.
pub fn wrap(words: &str, [first, others]: [usize; 2]) -> Vec<String> {
    let (mut lines, mut width) = (vec![String::new()], first);
    for word in words.split_whitespace() {
        let Some(line) = lines.last_mut() else { break };
        if !line.is_empty() && line.chars().count() + word.chars().count() + 1 > width {
            lines.push(word.into());
            width = others;
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn long_words_break_between_words() {
        assert_eq!(wrap("one two three four", [9, 9]), ["one two", "three", "four"]);
        assert_eq!(wrap("one two three four", [7, 10]), ["one two", "three four"]);
        assert_eq!(wrap("", [9, 9]), [""]);
    }
}
