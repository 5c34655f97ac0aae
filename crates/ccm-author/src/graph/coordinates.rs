//! Vertical coordinates of vertices.

use super::ordering::Lines;

/// What is drawn in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// How high it is.
    pub(super) height: f64,
    /// Where lines meet it, below its top.
    pub(super) port: f64,
    /// Room above and below it.
    pub(super) margin: f64,
    /// How much it pulls: lines that pass a column want to be straight.
    pub(super) weight: f64,
}

/// The top of every vertex: in the order of its column, without overlaps, and
/// as close to what its lines lead to as that allows.
pub(super) fn tops(columns: &[Vec<u32>], lines: &Lines, extents: &[Extent]) -> Vec<f64> {
    let mut tops = vec![0.0; extents.len()];
    for column in columns {
        stack(column, extents, &mut tops);
    }
    let count = columns.len();
    for sweep in 0..5 {
        for step in 0..count {
            let (at, sides) =
                if sweep % 2 == 0 { (step, &lines.left) } else { (count - 1 - step, &lines.right) };
            settle(&columns[at], sides, extents, &mut tops);
        }
    }
    let least = tops.iter().copied().fold(f64::INFINITY, f64::min);
    for top in &mut tops {
        *top -= least;
    }
    tops
}

fn stack(column: &[u32], extents: &[Extent], tops: &mut [f64]) {
    let mut top = 0.0;
    for (at, &vertex) in column.iter().enumerate() {
        if at > 0 {
            top += distance(extents, column[at - 1], vertex);
        }
        tops[vertex as usize] = top;
    }
}

/// The least distance between the tops of two neighbours in a column.
fn distance(extents: &[Extent], above: u32, below: u32) -> f64 {
    let (above, below) = (extents[above as usize], extents[below as usize]);
    above.height + above.margin.max(below.margin)
}

/// A run of vertices that touch each other.
struct Pool {
    weight: f64,
    mean: f64,
    count: usize,
}

/// Moves the vertices of a column to where their lines on one side want them.
/// Vertices that would come too close are pooled and share the mean of their
/// wishes, which gives the least sum of squared distances.
fn settle(column: &[u32], sides: &[Vec<u32>], extents: &[Extent], tops: &mut [f64]) {
    let mut offsets = Vec::with_capacity(column.len());
    let mut offset = 0.0;
    let mut pools: Vec<Pool> = Vec::with_capacity(column.len());
    for (at, &vertex) in column.iter().enumerate() {
        let extent = extents[vertex as usize];
        if at > 0 {
            offset += distance(extents, column[at - 1], vertex);
        }
        offsets.push(offset);
        let neighbours = &sides[vertex as usize];
        let port = |other: u32| tops[other as usize] + extents[other as usize].port;
        let (wish, weight) = if neighbours.is_empty() {
            (tops[vertex as usize], 0.01)
        } else {
            let sum: f64 = neighbours.iter().map(|&other| port(other)).sum();
            (sum / neighbours.len() as f64 - extent.port, extent.weight)
        };
        let mut pool = Pool { weight, mean: wish - offset, count: 1 };
        while let Some(last) = pools.pop_if(|last| last.mean > pool.mean) {
            let weight = last.weight + pool.weight;
            pool = Pool {
                weight,
                mean: (last.mean * last.weight + pool.mean * pool.weight) / weight,
                count: last.count + pool.count,
            };
        }
        pools.push(pool);
    }
    let means = pools.iter().flat_map(|pool| std::iter::repeat_n(pool.mean, pool.count));
    for ((&vertex, offset), mean) in column.iter().zip(offsets).zip(means) {
        tops[vertex as usize] = mean + offset;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents(count: usize) -> Vec<Extent> {
        vec![Extent { height: 10.0, port: 5.0, margin: 2.0, weight: 1.0 }; count]
    }

    #[test]
    fn nothing_overlaps_and_lines_are_straight_where_they_can_be() {
        // Two chains, and one vertex that both lead to.
        let mut lines = Lines { left: vec![Vec::new(); 6], right: vec![Vec::new(); 6] };
        for (from, to) in [(0, 2), (1, 3), (2, 4), (3, 4)] {
            lines.right[from].push(to as u32);
            lines.left[to].push(from as u32);
        }
        let columns = [vec![0, 1], vec![2, 3], vec![4, 5]];
        let tops = tops(&columns, &lines, &extents(6));
        for column in &columns {
            for pair in column.windows(2) {
                assert!(tops[pair[1] as usize] - tops[pair[0] as usize] >= 12.0 - 1e-9);
            }
        }
        assert!((tops[0] - tops[2]).abs() < 1.0, "{tops:?}");
        assert!(tops[2] < tops[4] && tops[4] < tops[3], "{tops:?}");
    }
}
