//! Checks the vectors of a model and scales them to unit length.

use crate::error::{Error, ErrorKind, Result};

/// Returns `vector` scaled to length 1 (in f64, rounded once). A zero vector stays as it is.
///
/// # Errors
/// [`ErrorKind::Model`] if it has other dimensions, or contains NaN or infinity.
pub fn to_unit(mut vector: Vec<f32>, dimensions: usize) -> Result<Vec<f32>> {
    if vector.len() != dimensions {
        let message = format!("the model returned a vector of {} dimensions instead of {dimensions}", vector.len());
        return Err(Error::new(ErrorKind::Model, message)
            .with_remedy("the model has changed, or its name refers to another model; run `vault-index rebuild`"));
    }
    let norm = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
    if !norm.is_finite() {
        return Err(Error::new(ErrorKind::Model, "the model returned a vector that contains NaN or infinity")
            .with_remedy("try another model"));
    }
    if norm > 0.0 {
        vector.iter_mut().for_each(|x| *x = (f64::from(*x) / norm) as f32);
    }
    Ok(vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_become_unit_vectors() {
        assert_eq!(to_unit(vec![3.0, 4.0], 2).unwrap(), [0.6, 0.8]);
        assert_eq!(to_unit(vec![0.0, -0.0], 2).unwrap(), [0.0, 0.0]);
        assert_eq!(to_unit(vec![1e-30, 0.0], 2).unwrap(), [1.0, 0.0]);
        assert_eq!(to_unit(vec![f32::MAX, 0.0], 2).unwrap(), [1.0, 0.0]);
        for bad in [vec![1.0], vec![f32::NAN, 1.0], vec![f32::INFINITY, 1.0]] {
            assert_eq!(to_unit(bad, 2).unwrap_err().kind(), ErrorKind::Model);
        }
    }
}
