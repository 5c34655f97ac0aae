//! A minimal Markdown parser for the tests of the documentation.

use std::path::{Path, PathBuf};

/// One file of the documentation.
#[derive(Debug)]
pub struct Page {
    /// Its path from the root of the project.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The first word behind the fence.
    pub language: String,
    /// The other words behind the fence, such as `file=NAME`.
    pub attributes: Vec<String>,
    /// The line of the fence, from 1.
    pub line: usize,
    /// What is between the fences.
    pub text: String,
}

/// A link in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The line it stands in, from 1.
    pub line: usize,
    /// What it leads to, as written.
    pub target: String,
}

/// The root of the project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// `README.md` and everything below `docs`, in order of their names.
pub fn pages() -> Vec<Page> {
    let root = root();
    let mut found = vec![root.join("README.md")];
    let mut pending = vec![root.join("docs")];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found.into_iter().map(|path| Page::read(&root, path)).collect()
}

impl Block {
    /// The value of an attribute such as `file=NAME`.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let mut pairs = self.attributes.iter().filter_map(|word| word.split_once('='));
        pairs.find_map(|(found, value)| (found == name).then_some(value))
    }
}

impl Page {
    fn read(root: &Path, path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        Self { name, path, text }
    }

    /// A place in the page, as people write it.
    pub fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.name)
    }

    /// The fenced blocks.
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut open: Option<(Block, &str)> = None;
        for (number, line) in self.text.lines().enumerate() {
            match &mut open {
                Some((block, fence)) if line.trim() == *fence => {
                    blocks.push(block.clone());
                    open = None;
                }
                Some((block, _)) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                None => {
                    let ticks = line.bytes().take_while(|byte| *byte == b'`').count();
                    if ticks < 3 {
                        continue;
                    }
                    let mut info = line[ticks..].split_whitespace();
                    let block = Block {
                        language: info.next().unwrap_or_default().to_owned(),
                        attributes: info.map(str::to_owned).collect(),
                        line: number + 1,
                        text: String::new(),
                    };
                    open = Some((block, &line[..ticks]));
                }
            }
        }
        assert!(open.is_none(), "{}: a block is never closed", self.name);
        blocks
    }

    /// The lines outside of blocks, with their numbers from 1.
    pub fn prose(&self) -> Vec<(usize, &str)> {
        let mut fence = None;
        let mut lines = Vec::new();
        for (number, line) in self.text.lines().enumerate() {
            let ticks = line.bytes().take_while(|byte| *byte == b'`').count();
            match fence {
                Some(open) if line.trim().len() == open && ticks == open => fence = None,
                Some(_) => {}
                None if ticks >= 3 => fence = Some(ticks),
                None => lines.push((number + 1, line)),
            }
        }
        lines
    }

    /// The links.
    pub fn links(&self) -> Vec<Link> {
        let mut links = Vec::new();
        for (line, text) in self.prose() {
            let text = without_code(text);
            for (at, _) in text.match_indices("](") {
                let rest = &text[at + 2..];
                let target = &rest[..rest.find(')').unwrap_or(rest.len())];
                links.push(Link { line, target: target.to_owned() });
            }
        }
        links
    }

    /// The names that headings are linked to by.
    pub fn anchors(&self) -> Vec<String> {
        let headings = self.prose().into_iter().filter(|(_, line)| line.starts_with('#'));
        headings.map(|(_, line)| anchor(line.trim_start_matches('#').trim())).collect()
    }

    /// Pieces of code within the text, with their lines.
    pub fn inline_code(&self) -> Vec<(usize, &str)> {
        let mut pieces = Vec::new();
        for (line, text) in self.prose() {
            pieces.extend(text.split('`').skip(1).step_by(2).map(|piece| (line, piece)));
        }
        pieces
    }

    /// The rows of tables whose header begins with these cells, with their
    /// lines; without the header.
    pub fn rows(&self, header: &[&str]) -> Vec<(usize, Vec<String>)> {
        let mut rows = Vec::new();
        let mut is_wanted = None;
        for (line, text) in self.prose() {
            if !text.starts_with('|') {
                is_wanted = None;
                continue;
            }
            let cells = cells(text);
            match is_wanted {
                None => is_wanted = Some(cells.iter().zip(header).all(|(cell, name)| cell == name)),
                Some(true) if !text.starts_with("|-") => rows.push((line, cells)),
                Some(_) => {}
            }
        }
        rows
    }
}

/// The cells of a row; `\|` is a bar in a cell.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim().trim_start_matches('|');
    let row = row.strip_suffix('|').unwrap_or(row).replace("\\|", "\0");
    row.split('|').map(|cell| cell.trim().replace('\0', "|")).collect()
}

fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The name that a heading is linked to by.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Where a page holds something generated: between `<!-- generated: WHAT -->`
/// and `<!-- end of generated -->`, each on a line of its own. Gives the text with what `render` says in
/// these places.
pub fn regenerate(text: &str, mut render: impl FnMut(&str) -> String) -> String {
    let (begin, end) = ("\n<!-- generated: ", "<!-- end of generated -->");
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(begin) {
        let after = at + rest[at..].find("-->").unwrap() + 3;
        let what = rest[at + begin.len()..after - 3].trim();
        let close = after + rest[after..].find(end).unwrap_or_else(|| panic!("{what}: no end"));
        out.push_str(&rest[..after]);
        out.push_str("\n\n");
        out.push_str(render(what).trim_end());
        out.push_str("\n\n");
        rest = &rest[close..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        Page { name: "p.md".into(), path: "p.md".into(), text: text.into() }
    }

    #[test]
    fn blocks_links_and_headings_are_found() {
        let page = page(
            "# A title, `x`\n[a](b.md#c) `[no](link)`\n```yaml file=m.yaml\na: 1\n```\n````text\n```\n````\n## Two\n",
        );
        let blocks = page.blocks();
        assert_eq!(blocks.len(), 2);
        assert_eq!(
            blocks[0],
            Block {
                language: "yaml".into(),
                attributes: vec!["file=m.yaml".into()],
                line: 3,
                text: "a: 1\n".into()
            }
        );
        assert_eq!(blocks[1].text, "```\n");
        assert_eq!(page.links(), [Link { line: 2, target: "b.md#c".into() }]);
        assert_eq!(page.anchors(), ["a-title-x", "two"]);
        assert_eq!(page.inline_code(), [(1, "x"), (2, "[no](link)")]);
    }

    #[test]
    fn rows_are_found_by_the_header() {
        let page =
            page("| A | B |\n|---|---|\n| 1 | `x \\| y` |\n\n| C | D |\n|---|---|\n| 2 | 3 |\n");
        assert_eq!(page.rows(&["A"]), [(3, vec!["1".to_owned(), "`x | y`".to_owned()])]);
    }

    #[test]
    fn generated_places_are_filled() {
        let text = "a\n<!-- generated: x y -->\nold\n<!-- end of generated -->\nb\n";
        let new = regenerate(text, |what| format!("new {what}\n"));
        assert_eq!(new, "a\n<!-- generated: x y -->\n\nnew x y\n\n<!-- end of generated -->\nb\n");
        assert_eq!(regenerate(&new, |what| format!("new {what}\n")), new);
    }
}
