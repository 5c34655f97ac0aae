//! A layered layout of one manifest: columns by the longest path of references,
//! rows in declaration order where no line has to be uncrossed.

use std::collections::HashMap;

use super::coordinates::{Extent, tops};
use super::ordering::{Lines, uncross};

/// Room between two resources of a column.
const ROW_GAP: f64 = 16.0;
/// Room around a line that passes a column.
const LANE_GAP: f64 = 9.0;
/// Room between columns, and how much a line adds to it, up to a limit.
const COLUMN_GAP: i64 = 56;
const GAP_PER_LINE: i64 = 3;
const MAX_COLUMN_GAP: i64 = 160;
/// Lines that pass columns get lanes of their own up to this many: a chain in
/// which every resource refers to all before it would need millions.
const MAX_LANES: usize = 100_000;

/// Something with a place of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) width: i64,
    pub(super) height: i64,
    /// Where lines meet it, below its top.
    pub(super) port: i64,
    /// Whether it is as wide as the others of its column.
    pub(super) is_stretched: bool,
}

/// A line from an item to a later one. Lines of one group that leave one item
/// share their lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) group: usize,
}

/// Where a line passes a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) left: i64,
    pub(super) right: i64,
    pub(super) y: i64,
}

/// The lanes that the links of one group from one item share.
#[derive(Clone, Debug)]
pub(super) struct Trunk {
    pub(super) from: usize,
    pub(super) group: usize,
    /// From left to right, one for each column.
    pub(super) lanes: Vec<Lane>,
}

/// Where everything is, from the top left corner.
#[derive(Debug, Default)]
pub(super) struct Layered {
    /// The column of each item.
    pub(super) columns: Vec<usize>,
    /// The row of each item among the items of its column.
    pub(super) rows: Vec<usize>,
    pub(super) x: Vec<i64>,
    pub(super) y: Vec<i64>,
    /// The width of each item, after stretching.
    pub(super) widths: Vec<i64>,
    /// The right end of each item's column.
    pub(super) column_ends: Vec<i64>,
    /// Lines that pass columns, drawn once for all links that share them.
    pub(super) trunks: Vec<Trunk>,
    /// Where each link leaves a trunk: which, and behind which of its lanes.
    /// `None` where it leads straight from its item.
    pub(super) branches: Vec<Option<(usize, usize)>>,
    pub(super) width: i64,
    pub(super) height: i64,
}

/// Lays out items. Links lead from earlier items to later ones; others are left
/// out.
pub(super) fn lay_out(items: &[Item], links: &[Link]) -> Layered {
    let mut columns = vec![0; items.len()];
    let forward = |link: &&Link| link.from < link.to && link.to < items.len();
    let mut by_target: Vec<&Link> = links.iter().filter(forward).collect();
    by_target.sort_by_key(|link| link.to);
    for link in &by_target {
        columns[link.to] = columns[link.to].max(columns[link.from] + 1);
    }
    let count = columns.iter().max().map_or(0, |last| last + 1);
    let mut vertices = Vertices::new(items, &columns, count);
    vertices.connect(&by_target, &columns);
    uncross(&mut vertices.order, &vertices.lines);
    let tops = tops(&vertices.order, &vertices.lines, &vertices.extents);
    let mut laid = Layered { columns, ..Layered::default() };
    laid.place(items, &vertices, &tops);
    laid.route(links, &vertices, &tops);
    laid
}

/// Items, and lanes behind them with higher numbers.
struct Vertices {
    extents: Vec<Extent>,
    lines: Lines,
    order: Vec<Vec<u32>>,
    /// The lanes of each group of lines that leave an item: the first vertex,
    /// and how many follow it.
    trunks: Vec<((usize, usize), usize, usize)>,
    /// The trunk of each group.
    trunk_of: HashMap<(usize, usize), usize>,
    /// How many lines there are between a column and the next.
    counts: Vec<i64>,
}

impl Vertices {
    fn new(items: &[Item], columns: &[usize], count: usize) -> Self {
        let extent = |item: &Item| Extent {
            height: item.height as f64,
            port: item.port as f64,
            margin: ROW_GAP,
            weight: 1.0,
        };
        let mut order = vec![Vec::new(); count];
        for (index, &column) in columns.iter().enumerate() {
            order[column].push(index as u32);
        }
        let empty = vec![Vec::new(); items.len()];
        Self {
            extents: items.iter().map(extent).collect(),
            lines: Lines { left: empty.clone(), right: empty },
            order,
            trunks: Vec::new(),
            trunk_of: HashMap::new(),
            counts: vec![0; count],
        }
    }

    fn connect(&mut self, links: &[&Link], columns: &[usize]) {
        // How far the lines of each group reach.
        let mut reach: HashMap<(usize, usize), usize> = HashMap::new();
        for link in links {
            let far = reach.entry((link.from, link.group)).or_default();
            *far = (*far).max(columns[link.to]);
        }
        let mut groups: Vec<((usize, usize), usize)> = reach.into_iter().collect();
        groups.retain(|&((from, _), far)| far > columns[from] + 1);
        // Short ones first: a few long ones must not use up all lanes.
        groups.sort_by_key(|&((from, group), far)| (far - columns[from], from, group));
        let mut left = MAX_LANES;
        // Rows begin in declaration order; a lane is next to the item that it
        // comes from.
        let mut keys: Vec<usize> = (0..self.extents.len()).collect();
        for (key @ (from, _), far) in groups {
            let (first, count) = (columns[from] + 1, far - columns[from] - 1);
            if count > left {
                break;
            }
            left -= count;
            self.trunk_of.insert(key, self.trunks.len());
            self.trunks.push((key, self.extents.len(), count));
            let mut before = from as u32;
            for column in first..far {
                let lane = self.extents.len() as u32;
                self.extents.push(Extent { height: 0.0, port: 0.0, margin: LANE_GAP, weight: 4.0 });
                self.lines.left.push(Vec::new());
                self.lines.right.push(Vec::new());
                self.line(before, lane);
                self.order[column].push(lane);
                keys.push(from);
                before = lane;
            }
        }
        for column in &mut self.order {
            column.sort_by_key(|&vertex| (keys[vertex as usize], vertex));
        }
        for link in links {
            let span = columns[link.to] - columns[link.from];
            self.counts[columns[link.to] - 1] += 1;
            match self.trunk_of.get(&(link.from, link.group)) {
                _ if span == 1 => self.line(link.from as u32, link.to as u32),
                Some(&trunk) => {
                    let (_, lane, _) = self.trunks[trunk];
                    self.line((lane + span - 2) as u32, link.to as u32);
                }
                None => {}
            }
        }
    }

    fn line(&mut self, from: u32, to: u32) {
        self.lines.right[from as usize].push(to);
        self.lines.left[to as usize].push(from);
    }
}

impl Layered {
    fn place(&mut self, items: &[Item], vertices: &Vertices, tops: &[f64]) {
        self.x = vec![0; items.len()];
        self.rows = vec![0; items.len()];
        self.column_ends = vec![0; items.len()];
        self.widths = items.iter().map(|item| item.width).collect();
        self.y = tops.iter().take(items.len()).map(|top| top.round() as i64).collect();
        let mut left = 0;
        for (order, count) in vertices.order.iter().zip(&vertices.counts) {
            let here: Vec<usize> =
                order.iter().map(|&at| at as usize).filter(|&at| at < items.len()).collect();
            let widest = |stretched_only: bool| {
                let widths = here.iter().filter(|&&at| items[at].is_stretched || !stretched_only);
                widths.map(|&at| items[at].width).max().unwrap_or_default()
            };
            let (end, stretched) = (left + widest(false), widest(true));
            for (row, &at) in here.iter().enumerate() {
                self.x[at] = left;
                self.rows[at] = row;
                self.column_ends[at] = end;
                if items[at].is_stretched {
                    self.widths[at] = stretched;
                }
            }
            self.width = end;
            left = end + (COLUMN_GAP + GAP_PER_LINE * count).min(MAX_COLUMN_GAP);
        }
        let bottoms = items.iter().zip(&self.y).map(|(item, y)| y + item.height);
        let lanes = tops.iter().skip(items.len()).map(|top| top.round() as i64);
        self.height = bottoms.chain(lanes).max().unwrap_or_default();
    }

    fn route(&mut self, links: &[Link], vertices: &Vertices, tops: &[f64]) {
        // Where each column begins and ends.
        let mut spans: Vec<(i64, i64)> = vec![(0, 0); vertices.order.len()];
        for (at, &column) in self.columns.iter().enumerate() {
            spans[column] = (self.x[at], self.column_ends[at]);
        }
        for &((from, group), lane, count) in &vertices.trunks {
            let lane_at = |step: usize| {
                let (left, right) = spans[self.columns[from] + 1 + step];
                Lane { left, right, y: tops[lane + step].round() as i64 }
            };
            self.trunks.push(Trunk { from, group, lanes: (0..count).map(lane_at).collect() });
        }
        let branch = |link: &Link| {
            let trunk = *vertices.trunk_of.get(&(link.from, link.group))?;
            let (from, to) = (self.columns[link.from], *self.columns.get(link.to)?);
            Some((trunk, to.checked_sub(from + 2)?))
        };
        self.branches = links.iter().map(branch).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEM: Item = Item { width: 100, height: 40, port: 20, is_stretched: true };

    fn link(from: usize, to: usize) -> Link {
        Link { from, to, group: 0 }
    }

    #[test]
    fn columns_are_longest_paths() {
        let laid = lay_out(&[ITEM; 5], &[link(0, 1), link(1, 2), link(0, 2), link(0, 4)]);
        assert_eq!(laid.columns, [0, 1, 2, 0, 1]);
        assert_eq!(laid.rows, [0, 0, 0, 1, 1]);
        assert_eq!(laid.branches, [None, None, Some((0, 0)), None]);
        assert_eq!((laid.trunks[0].from, laid.trunks[0].lanes.len()), (0, 1));
    }

    #[test]
    fn lines_back_to_where_they_come_from_are_left_out() {
        let laid = lay_out(&[ITEM; 2], &[link(1, 0), link(1, 1), link(0, 7)]);
        assert_eq!(laid.columns, [0, 0]);
        assert_eq!(lay_out(&[], &[]).width, 0);
    }

    #[test]
    fn a_wide_item_makes_room_and_the_others_share_a_width() {
        let wide = Item { width: 500, is_stretched: false, ..ITEM };
        let narrow = Item { width: 60, ..ITEM };
        let laid = lay_out(&[ITEM, wide, narrow, ITEM], &[link(1, 3)]);
        assert_eq!(laid.widths, [100, 500, 100, 100]);
        assert_eq!(laid.column_ends[..3], [500; 3]);
        assert!(laid.x[3] > 500);
    }

    #[test]
    fn everything_refers_to_everything_and_lanes_are_bounded() {
        let count = 700;
        let links: Vec<Link> =
            (0..count).flat_map(|to| (0..to).map(move |from| link(from, to))).collect();
        let laid = lay_out(&vec![ITEM; count], &links);
        assert_eq!(laid.columns[count - 1], count - 1);
        let lanes: usize = laid.trunks.iter().map(|trunk| trunk.lanes.len()).sum();
        assert!((90_000..=MAX_LANES).contains(&lanes), "{lanes}");
    }
}
