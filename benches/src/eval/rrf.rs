//! Reciprocal rank fusion, a common way to merge two lists, for comparison.

use std::collections::HashMap;

/// The constant of Cormack, Clarke and Büttcher 2009.
pub const RRF_K: usize = 60;

/// Merges lists by the sum of `1 / (60 + rank)` over the lists that contain a document, best first. For equal sums, the
/// document with the best rank in any list comes first, then the lower number.
pub fn reciprocal_rank_fusion(lists: &[&[usize]]) -> Vec<usize> {
    /// The sum and the best rank.
    type Fused = (f64, usize);
    let mut fused: HashMap<usize, Fused> = HashMap::new();
    for list in lists {
        for (document, rank) in list.iter().zip(1..) {
            let (sum, best) = fused.entry(*document).or_insert((0.0, usize::MAX));
            *sum += 1.0 / (RRF_K + rank) as f64;
            *best = rank.min(*best);
        }
    }
    let mut fused: Vec<(usize, Fused)> = fused.into_iter().collect();
    fused.sort_by(|(a, (a_sum, a_best)), (b, (b_sum, b_best))| {
        b_sum.total_cmp(a_sum).then(a_best.cmp(b_best)).then(a.cmp(b))
    });
    fused.into_iter().map(|(document, _)| document).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computed_by_hand() {
        // 1: 1/61 + 1/62; 3: 1/63 + 1/61; 2: 1/62.
        assert_eq!(reciprocal_rank_fusion(&[&[1, 2, 3], &[3, 1]]), [1, 3, 2]);
        // 7 and 8: 1/61 each, a tie.
        assert_eq!(reciprocal_rank_fusion(&[&[8], &[7]]), [7, 8]);
        // In both lists beats the first place in one: 2/63 > 1/61.
        assert_eq!(reciprocal_rank_fusion(&[&[1, 2, 9], &[4, 5, 9]])[0], 9);
        assert_eq!(reciprocal_rank_fusion(&[&[5, 4], &[]]), [5, 4]);
        assert!(reciprocal_rank_fusion(&[]).is_empty());
    }
}
