//! The laws of this room: what is found is what the slow loop finds, whatever the vectors.

use proptest::prelude::*;

use super::kernel::{Kernel, LINE};
use super::*;

/// The specification of [`top_k`].
fn slow_top_k(rows: &[Option<Vec<f32>>], q: &[f32], k: usize, filter: Option<&Bitmap>) -> Vec<(usize, f32)> {
    let mut all: Vec<(usize, f32)> = rows
        .iter()
        .enumerate()
        .filter(|(slot, _)| filter.is_none_or(|filter| filter.contains(*slot)))
        .filter_map(|(slot, row)| row.as_ref().map(|row| (slot, rescore(q, row) + 0.0)))
        .collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all.truncate(k);
    all
}

fn codes_of(dimensions: usize, rows: &[Option<Vec<f32>>]) -> Codes {
    let mut codes = Codes::new(dimensions);
    for (slot, row) in rows.iter().enumerate() {
        if let Some(row) = row {
            codes.set(slot, row).unwrap();
        }
    }
    codes
}

fn check(rows: &[Option<Vec<f32>>], q: &[f32], k: usize, filter: Option<&Bitmap>) {
    let codes = codes_of(q.len(), rows);
    let query = &QueryCodes::new(q).unwrap();
    let exact = |slot: usize| Ok(rescore(q, rows[slot].as_ref().unwrap()));
    let (wanted, expected) = (Wanted { query, k, filter }, slow_top_k(rows, q, k, filter));
    for kernel in Kernel::all() {
        let codes = codes.clone().with_kernel(kernel);
        assert_eq!(top_k(&codes, wanted, Threads::One, exact).unwrap(), expected, "{}", kernel.name());
    }
    let mut scan = Scan::new(wanted);
    for (number, block) in blocks_of(q.len(), rows).iter().enumerate().rev() {
        scan.block(number, block.as_bytes()).unwrap();
    }
    assert_eq!(scan.best(exact).unwrap(), expected, "from blocks");

    for precision in [Precision::Coarse, Precision::Fine] {
        let mut estimates = Vec::new();
        codes.estimates(query, precision, Threads::Exactly(2.try_into().unwrap()), &mut estimates);
        assert_eq!(estimates.len(), codes.len());
        for (slot, row) in rows.iter().enumerate() {
            let estimate = estimates.get(slot).copied().unwrap_or(Estimate::NONE);
            if precision == Precision::Fine {
                assert_eq!(estimate, codes.estimate(query, slot));
            }
            match row {
                Some(row) => {
                    let exact = rescore(q, row);
                    let holds = estimate.lower() <= exact && exact <= estimate.upper();
                    assert!(holds, "{exact} of {slot} in {precision:?} {estimate:?}");
                }
                None => assert_eq!(estimate, Estimate::NONE),
            }
        }
    }
}

fn blocks_of(dimensions: usize, rows: &[Option<Vec<f32>>]) -> Vec<Block> {
    let mut blocks = vec![Block::new(dimensions); rows.len().div_ceil(BLOCK_ROWS)];
    for (slot, row) in rows.iter().enumerate() {
        if let Some(row) = row {
            blocks[place(slot).0].set(place(slot).1, &Quantized::new(row).unwrap());
        }
    }
    blocks
}

fn unit(mut v: Vec<f32>) -> Vec<f32> {
    let norm = v.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    if norm > 0.0 {
        v.iter_mut().for_each(|x| *x = (f64::from(*x) / norm) as f32);
    }
    v
}

/// Components that hurt: zeros of both signs, spikes, subnormals, halves of a step, and plain ones.
fn component() -> impl Strategy<Value = f32> {
    prop_oneof![
        8 => -1.0_f32..1.0,
        2 => Just(0.0), 1 => Just(-0.0), 1 => Just(1.0), 1 => Just(-1.0),
        1 => Just(1e-38), 1 => Just(1e-42), 1 => Just(0.5 / 127.0), 1 => Just(1e-6),
    ]
}

fn vector(dimensions: usize) -> impl Strategy<Value = Vec<f32>> {
    prop_oneof![
        9 => prop::collection::vec(component(), dimensions).prop_map(unit),
        1 => Just(vec![0.0; dimensions]),
        // Shorter than unit, down to what underflows.
        1 => prop::collection::vec((-1.0_f32..1.0).prop_map(|x| x * 1e-33), dimensions),
    ]
}

/// Rows of which many are equal, or equal but for the last bits.
fn rows(dimensions: usize) -> impl Strategy<Value = Vec<Option<Vec<f32>>>> {
    let few = prop::collection::vec(vector(dimensions), 1..6);
    let picks = prop::collection::vec((any::<prop::sample::Index>(), 0..dimensions, -2_i32..3, 0..8_u8), 0..200);
    (few, picks).prop_map(|(few, picks)| {
        let row = |(which, at, ulps, empty): (prop::sample::Index, usize, i32, u8)| {
            let mut row = which.get(&few).clone();
            for _ in 0..ulps.abs() {
                row[at] = if ulps > 0 { row[at].next_up() } else { row[at].next_down() };
            }
            (empty > 0).then_some(row)
        };
        picks.into_iter().map(row).collect()
    })
}

proptest! {
    #[test]
    fn top_k_is_exact(
        (rows, q) in prop_oneof![Just(1_usize), Just(7), Just(16), Just(64), Just(100)]
            .prop_flat_map(|d| (rows(d), vector(d))),
        k in 0_usize..250,
        few in 0_usize..12,
        members in prop::option::of(prop::collection::vec(0_usize..220, 0..100)),
    ) {
        let filter: Option<Bitmap> = members.map(|members| members.into_iter().collect());
        check(&rows, &q, k, filter.as_ref());
        check(&rows, &q, few, filter.as_ref());
    }

    #[test]
    fn top_k_is_exact_for_near_neighbours_of_the_query(
        q in prop::collection::vec(-1.0_f32..1.0, 384).prop_map(unit),
        noise in prop::collection::vec((0_usize..384, -1e-3_f32..1e-3), 1..300),
    ) {
        let near = |&(at, by): &(usize, f32)| { let mut row = q.clone(); row[at] += by; Some(unit(row)) };
        let rows: Vec<_> = noise.iter().map(near).collect();
        check(&rows, &q, 10, None);
    }

    #[test]
    fn every_kernel_is_the_naive_sum(
        lines in 1_usize..5, rows in 0_usize..10, start in 0_usize..LINE, extreme in 0..4_u8, seed in any::<u32>(),
        which in prop::collection::vec(any::<prop::sample::Index>(), 0..70),
    ) {
        let width = lines * LINE;
        let mut random = random(seed);
        let query: Vec<i8> = (0..2 * width)
            .map(|_| match extreme { 0 => 127, 1 => -127, 2 => 0, _ => (random() % 255) as i8 })
            .collect();
        // They begin anywhere, and every byte is possible.
        let len = start + rows * width;
        let bytes: Vec<u8> = (0..len).map(|_| if extreme == 3 { random() as u8 } else { 255 }).collect();
        let matrix = &bytes[start..];
        let naive = |row: usize| -> i32 {
            let row = &matrix[row * width..][..width];
            let low: i32 = (0..width).map(|j| query[j] as i32 * (row[j] & 15) as i32).sum();
            low + (0..width).map(|j| query[width + j] as i32 * (row[j] >> 4) as i32).sum::<i32>()
        };
        let which: Vec<u32> = which.iter().filter(|_| rows > 0).map(|at| at.index(rows) as u32).collect();
        for kernel in Kernel::all() {
            let mut out = vec![7; rows];
            kernel.dots(&query, matrix, &mut out);
            prop_assert_eq!(&out, &(0..rows).map(naive).collect::<Vec<_>>(), "{}", kernel.name());
            let mut out = vec![7; which.len()];
            kernel.dots_of(&query, matrix, &which, &mut out);
            let expected: Vec<i32> = which.iter().map(|&row| naive(row as usize)).collect();
            prop_assert_eq!(&out, &expected, "{}", kernel.name());
        }
    }

    #[test]
    fn the_bound_holds(v in prop_oneof![Just(3_usize), Just(384)].prop_flat_map(vector)) {
        let quantized = Quantized::new(&v).unwrap();
        let off = |code: fn(i8) -> f64| v.iter().zip(&quantized.codes)
            .map(|(&x, &c)| (f64::from(x) - f64::from(quantized.scale) * code(c)).powi(2))
            .sum::<f64>().sqrt();
        prop_assert!(off(f64::from) <= f64::from(quantized.error));
        prop_assert!(off(|code| 16.0 * f64::from(code >> 4) + 7.5) <= f64::from(quantized.coarse));
        prop_assert!(quantized.scale > 0.0 && !quantized.codes.contains(&-128));
    }

    #[test]
    fn blocks_and_codes_hold_the_same_rows(
        rows in prop::collection::vec((0_usize..3 * BLOCK_ROWS, vector(5), any::<bool>()), 0..40),
        order in Just([0_usize, 1, 2]).prop_shuffle(),
    ) {
        let mut blocks = [Block::new(5), Block::new(5), Block::new(5)];
        let mut codes = Codes::new(5);
        for (slot, row, keep) in &rows {
            let (number, at) = place(*slot);
            let quantized = codes.set(*slot, row).unwrap();
            blocks[number].set(at, &quantized);
            prop_assert_eq!(blocks[number].row(at), Some(quantized));
            if !keep {
                codes.clear(*slot);
                blocks[number].clear(at);
                prop_assert_eq!(blocks[number].row(at), None);
            }
        }
        let loaded = Codes::with_blocks(5, order.map(|i| (i, blocks[i].as_bytes()))).unwrap();
        prop_assert_eq!((&*loaded.high, &*loaded.low), (&*codes.high, &*codes.low));
        prop_assert_eq!(
            (&loaded.scales, &loaded.coarse, &loaded.errors), (&codes.scales, &codes.coarse, &codes.errors)
        );
        let rows = blocks.iter().map(|block| (0..BLOCK_ROWS).filter(|&row| block.row(row).is_some()).count());
        prop_assert_eq!(codes.rows(), rows.sum::<usize>());
    }

    #[test]
    fn the_heap_keeps_the_best(scores in prop::collection::vec((-3_i8..4, 0_u16..50), 0..60), k in 0_usize..70) {
        // Zeros of both signs are equal.
        let score = |s: i8, id: u16| match s {
            3 => f32::NAN,
            0 if id.is_multiple_of(2) => -0.0,
            s => f32::from(s),
        };
        let mut heap = TopK::new(k);
        for &(s, id) in &scores {
            heap.push(score(s, id), id);
        }
        let mut all: Vec<(u16, f32)> =
            scores.iter().filter(|(s, _)| *s < 3).map(|&(s, id)| (id, f32::from(s))).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all.truncate(k);
        prop_assert_eq!(heap.into_sorted(), all);
    }

    #[test]
    fn a_bitmap_is_a_set(
        a in prop::collection::btree_set(0_usize..300, 0..50), b in prop::collection::btree_set(0_usize..150, 0..50),
    ) {
        let (mut one, two): (Bitmap, Bitmap) = (a.iter().copied().collect(), b.iter().copied().collect());
        prop_assert_eq!(one.iter().collect::<Vec<_>>(), a.iter().copied().collect::<Vec<_>>());
        prop_assert_eq!(one.count(), a.len());
        one.intersect(&two);
        prop_assert_eq!(one.iter().collect::<Vec<_>>(), a.intersection(&b).copied().collect::<Vec<_>>());
        a.iter().for_each(|&slot| one.remove(slot));
        prop_assert_eq!(one.count(), 0);
    }
}

/// Numbers that look random.
fn random(mut seed: u32) -> impl FnMut() -> u32 {
    move || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed >> 8
    }
}

fn random_rows(count: usize, dimensions: usize) -> Vec<Option<Vec<f32>>> {
    let mut random = random(1);
    let mut component = || random() as f32 / (1 << 24) as f32 - 0.5;
    (0..count).map(|_| Some(unit((0..dimensions).map(|_| component()).collect()))).collect()
}

#[test]
fn only_rows_that_can_win_are_rescored() {
    let rows = random_rows(5000, 384);
    let q = rows[77].clone().unwrap();
    let codes = codes_of(384, &rows);
    let mut rescored = 0;
    let exact = |slot: usize| {
        rescored += 1;
        Ok(rescore(&q, rows[slot].as_ref().unwrap()))
    };
    let wanted = Wanted { query: &QueryCodes::new(&q).unwrap(), k: 1, filter: None };
    let best = top_k(&codes, wanted, Threads::One, exact).unwrap();
    assert_eq!((best[0].0, rescored), (77, 1));
}

#[test]
fn many_queries_threads_and_filters_change_nothing() {
    let mut rows = random_rows(20_000, 24);
    // Empty slots, equal rows and rows that only the last bit tells apart.
    (0..rows.len()).step_by(7).for_each(|slot| rows[slot] = None);
    (0..rows.len() - 4000).step_by(5).for_each(|slot| rows[slot + 4000] = rows[slot].clone());
    rows.iter_mut().step_by(11).flatten().for_each(|row| row[3] = row[3].next_down());
    let codes = codes_of(24, &rows);
    let queries: Vec<Vec<f32>> = random_rows(6, 24).into_iter().flatten().chain(rows[8].clone()).collect();
    let queries: Vec<_> = queries.iter().map(|q| (q, QueryCodes::new(q).unwrap())).collect();
    let mut random = random(5);
    let mut some = |share: u32| -> Bitmap { (0..rows.len()).filter(|_| random() % 100 < share).collect() };
    let filters = [None, Some(some(1)), Some(some(10)), Some(some(45)), Some(some(90)), Some(Bitmap::default())];
    let wanted: Vec<Wanted> = queries
        .iter()
        .zip(filters.iter().cycle())
        .zip([10, 100, 3000, 1, usize::MAX, 0, 50])
        .map(|(((_, query), filter), k)| Wanted { query, k, filter: filter.as_ref() })
        .collect();
    let exact = |query: usize, slot: usize| Ok(rescore(queries[query].0, rows[slot].as_ref().unwrap()));
    let each: Vec<_> =
        queries.iter().zip(&wanted).map(|((q, _), wanted)| slow_top_k(&rows, q, wanted.k, wanted.filter)).collect();
    for threads in [Threads::One, Threads::Auto, Threads::Exactly(3.try_into().unwrap())] {
        assert_eq!(top_k_many(&codes, &wanted, threads, exact).unwrap(), each, "{threads:?}");
        for (query, wanted) in wanted.iter().enumerate() {
            assert_eq!(top_k(&codes, *wanted, threads, |slot| exact(query, slot)).unwrap(), each[query], "{threads:?}");
        }
    }
    assert!(top_k_many(&codes, &[], Threads::Auto, exact).unwrap().is_empty());
}

#[test]
fn scores_closer_than_codes_can_tell() {
    // A spike that all rows share takes the whole range of the codes; what tells rows apart is below a step of it.
    let rows: Vec<_> = (0..3000)
        .map(|i| {
            let mut row = vec![0.0; 384];
            (row[0], row[1 + i % 383]) = (1.0, (i * 7919 % 3001) as f32 * 1e-6);
            Some(unit(row))
        })
        .collect();
    let q = unit((0..384).map(|i| 1.0 + (i % 5) as f32).collect());
    for k in [1, 10, 3000] {
        check(&rows, &q, k, None);
    }
}

#[test]
fn an_error_of_the_caller_is_passed_on() {
    let codes = codes_of(3, &random_rows(100, 3));
    let wanted = Wanted { query: &QueryCodes::new(&[1.0, 0.0, 0.0]).unwrap(), k: 5, filter: None };
    let fail = |_| Err(crate::error::Error::new(crate::error::ErrorKind::Store, "no"));
    assert!(top_k(&codes, wanted, Threads::One, fail).is_err());
    assert!(top_k(&Codes::new(3), wanted, Threads::One, fail).unwrap().is_empty());
}

#[test]
#[should_panic(expected = "row 3 lies outside")]
fn a_kernel_reads_no_row_outside() {
    Kernel::best().dots_of(&[1; 2 * LINE], &[0; 3 * LINE], &[0, 3, 1], &mut [0; 3]);
}

#[test]
fn the_widest_vectors_do_not_overflow() {
    // Codes all 127, and sums long enough for the rounding of f32 to outgrow the error of the codes.
    let row = unit(vec![1.0; MAX_DIMENSIONS - 36]);
    check(&[Some(row.clone()), Some(row.iter().map(|x| -x).collect())], &row, 2, None);
}

#[test]
fn what_cannot_be_quantised_is_refused() {
    let kind = |v: &[f32]| Quantized::new(v).map_err(|e| e.kind());
    for bad in [&[f32::NAN, 0.0][..], &[f32::INFINITY, 0.0], &[f32::NEG_INFINITY], &[1.0, 0.1], &[f32::MAX; 3], &[]] {
        assert_eq!(kind(bad), Err(crate::error::ErrorKind::Model), "{bad:?}");
    }
    assert!(QueryCodes::new(&[f32::NAN]).is_err());
    assert!(QueryCodes::new(&[f32::MAX]).is_err());
    assert!(QueryCodes::new(&[3.0, 4.0]).is_ok());
    let mut codes = Codes::new(2);
    assert!(codes.set(0, &[1.0]).is_err());
    assert!(codes.set(MAX_SLOTS, &[1.0, 0.0]).is_err());
    assert!(codes.is_empty());
}

#[test]
fn damaged_blocks_are_refused() {
    let load = |bytes: &[u8]| Codes::new(4).load_block(0, bytes).map_err(|e| e.kind());
    let good = Block::new(4).as_bytes().to_vec();
    assert_eq!(load(&good), Ok(()));
    assert_eq!(load(&good[1..]), Err(crate::error::ErrorKind::Damaged));
    for number in [f32::NAN, f32::INFINITY, -1.0, 1e9] {
        let mut bad = good.clone();
        bad[row_place(4, 3).scale].copy_from_slice(&number.to_le_bytes());
        assert_eq!(load(&bad), Err(crate::error::ErrorKind::Damaged), "{number}");
    }
    assert!(Codes::new(4).load_block(usize::MAX, &good).is_err());
}

#[test]
fn the_layout_of_a_block_is_as_documented() {
    assert_eq!(block_len(384), 1024 * (4 + 4 + 4 + 192 + 192));
    assert_eq!(block_len(5), 1024 * (4 + 4 + 4 + 64 + 64));
    let at = row_place(384, 2);
    assert_eq!((at.scale, at.coarse, at.error), (8..12, 4104..4108, 8200..8204));
    assert_eq!((at.high, at.low), (12_672..12_864, 209_280..209_472));
    assert_eq!(row_place(384, 1023).low.end, block_len(384));
    let row = Quantized { codes: (-63..=64).chain([127, -127]).collect(), scale: 1.0, error: 2.0, coarse: 3.0 };
    let [high, low] = row.halves();
    // Two lines: code 128 shares a byte with code 0. -63 = 16 · -4 + 1, 127 = 16 · 7 + 15.
    assert_eq!((high.len(), high[0], low[0]), (128, 0xf4, 0xf1));
    // -62 = 16 · -4 + 2, -127 = 16 · -8 + 1.
    assert_eq!((high[1], low[1]), (0x04, 0x12));
    assert_eq!((high[127], low[127]), (0x0c, 0x00));
    assert_eq!(super::place(2050), (2, 2));
}

#[test]
fn many_queries_have_the_estimates_of_each() {
    // More rows than the queries share at a time, and a gap.
    let row = |n: usize| {
        let row: Vec<f32> = (0..24).map(|i| ((n * 31 + i * 17) % 29) as f32 - 14.0).collect();
        let norm = rescore(&row, &row).sqrt();
        (n != 2000).then(|| row.iter().map(|x| x / norm).collect())
    };
    let rows: Vec<Option<Vec<f32>>> = (0..2500).map(row).collect();
    let codes = codes_of(24, &rows);
    let queries: Vec<QueryCodes> =
        [3, 700, 2400].iter().map(|&n: &usize| QueryCodes::new(rows[n].as_ref().unwrap()).unwrap()).collect();
    for threads in [Threads::One, Threads::Exactly(2.try_into().unwrap()), Threads::Exactly(64.try_into().unwrap())] {
        let mut outs = vec![Vec::new(), vec![Estimate { score: 9.0, error: 9.0 }; 4000], Vec::new()];
        codes.estimates_many(&queries, Precision::Fine, threads, &mut outs);
        for (query, out) in queries.iter().zip(outs) {
            let each: Vec<Estimate> = (0..codes.len()).map(|slot| codes.estimate(query, slot)).collect();
            assert_eq!(out, each);
        }
    }
    codes.estimates_many(&[], Precision::Fine, Threads::Auto, &mut []);
}
