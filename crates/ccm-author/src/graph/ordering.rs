//! The order of rows within columns, so that few lines cross.

/// How often the columns are gone through. More sweeps gain little.
const SWEEPS: usize = 8;

/// The lines between vertices of adjacent columns.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// To the column on the left, by vertex.
    pub(super) left: Vec<Vec<u32>>,
    /// To the column on the right, by vertex.
    pub(super) right: Vec<Vec<u32>>,
}

/// Reorders columns so that fewer lines cross. The order given stays where
/// another one uncrosses nothing, so equal graphs give equal pictures.
pub(super) fn uncross(columns: &mut Vec<Vec<u32>>, lines: &Lines) {
    let mut rows = vec![0_u32; lines.left.len()];
    for column in columns.iter() {
        number(column, &mut rows);
    }
    let mut fewest = crossings(columns, lines, &rows);
    let mut tried = columns.clone();
    let mut in_vain = 0;
    for sweep in 0..SWEEPS {
        if fewest == 0 || in_vain == 2 {
            return;
        }
        let count = tried.len();
        for step in 1..count {
            let (at, sides) =
                if sweep % 2 == 0 { (step, &lines.left) } else { (count - 1 - step, &lines.right) };
            sort(&mut tried[at], sides, &rows);
            number(&tried[at], &mut rows);
        }
        let found = crossings(&tried, lines, &rows);
        if found < fewest {
            fewest = found;
            columns.clone_from(&tried);
            in_vain = 0;
        } else {
            in_vain += 1;
        }
    }
}

fn number(column: &[u32], rows: &mut [u32]) {
    for (row, &vertex) in column.iter().enumerate() {
        rows[vertex as usize] = row as u32;
    }
}

/// Sorts the vertices that have lines on one side by the middle of what these
/// lead to. The others keep their rows.
fn sort(column: &mut [u32], sides: &[Vec<u32>], rows: &[u32]) {
    let mut slots = Vec::new();
    let mut keyed: Vec<(f64, u32)> = Vec::new();
    for (slot, &vertex) in column.iter().enumerate() {
        let neighbours = &sides[vertex as usize];
        if !neighbours.is_empty() {
            let sum: f64 = neighbours.iter().map(|&other| f64::from(rows[other as usize])).sum();
            slots.push(slot);
            keyed.push((sum / neighbours.len() as f64, vertex));
        }
    }
    // The sort is stable: equal ones keep their order.
    keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
    for (slot, (_, vertex)) in slots.into_iter().zip(keyed) {
        column[slot] = vertex;
    }
}

/// How many pairs of lines cross.
fn crossings(columns: &[Vec<u32>], lines: &Lines, rows: &[u32]) -> u64 {
    let mut count = 0;
    for (column, next) in columns.iter().zip(columns.iter().skip(1)) {
        let mut seen = Counter::new(next.len());
        let mut ends: Vec<u32> = Vec::new();
        for &vertex in column {
            ends.clear();
            ends.extend(lines.right[vertex as usize].iter().map(|&other| rows[other as usize]));
            count += ends.iter().map(|&end| seen.above(end)).sum::<u64>();
            for &end in &ends {
                seen.add(end);
            }
        }
    }
    count
}

/// Counts numbers, and answers how many larger ones there were: a Fenwick tree.
struct Counter {
    sums: Vec<u64>,
    total: u64,
}

impl Counter {
    fn new(size: usize) -> Self {
        Self { sums: vec![0; size + 1], total: 0 }
    }

    fn add(&mut self, number: u32) {
        let mut at = number as usize + 1;
        while let Some(sum) = self.sums.get_mut(at) {
            *sum += 1;
            at += at & at.wrapping_neg();
        }
        self.total += 1;
    }

    fn above(&self, number: u32) -> u64 {
        let mut at = number as usize + 1;
        let mut below = 0;
        while at > 0 {
            below += self.sums.get(at).copied().unwrap_or_default();
            at -= at & at.wrapping_neg();
        }
        self.total - below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize, pairs: &[(u32, u32)]) -> Lines {
        let mut lines = Lines { left: vec![Vec::new(); count], right: vec![Vec::new(); count] };
        for &(from, to) in pairs {
            lines.right[from as usize].push(to);
            lines.left[to as usize].push(from);
        }
        lines
    }

    #[test]
    fn crossed_lines_are_uncrossed_and_the_rest_stays() {
        let lines = lines(7, &[(0, 5), (1, 4), (2, 3)]);
        let mut columns = vec![vec![0, 1, 2], vec![3, 4, 5, 6]];
        uncross(&mut columns, &lines);
        assert_eq!(columns, [vec![0, 1, 2], vec![5, 4, 3, 6]]);
    }

    #[test]
    fn an_order_without_crossings_is_kept() {
        let lines = lines(6, &[(1, 3), (1, 5), (2, 5)]);
        let mut columns = vec![vec![0, 1, 2], vec![3, 4, 5]];
        uncross(&mut columns, &lines);
        assert_eq!(columns, [vec![0, 1, 2], vec![3, 4, 5]]);
    }

    #[test]
    fn crossings_are_counted_as_pairs() {
        // A complete graph of three by three has nine.
        let pairs: Vec<(u32, u32)> = (0..3).flat_map(|a| (3..6).map(move |b| (a, b))).collect();
        let lines = lines(6, &pairs);
        let columns = [vec![0, 1, 2], vec![3, 4, 5]];
        assert_eq!(crossings(&columns, &lines, &[0, 1, 2, 0, 1, 2]), 9);
    }
}
