//! What trying every value of some parameters found.

use serde::Serialize;

/// Rates over all combinations of the values of some parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tuned {
    /// What was run, and where.
    pub what: String,
    /// The parameters, in the order in which their values were tried.
    pub keys: Vec<Key>,
    /// KB/s of every combination, the last key's values running fastest.
    pub kb_per_s: Vec<f64>,
}

/// A parameter and the values that were tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Key {
    /// `drive.interleave`.
    pub path: String,
    /// As they were given, in that order.
    pub values: Vec<String>,
}

/// A step from the best combination to the next value of one parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// The parameter.
    pub path: String,
    /// Its value at the best.
    pub from: String,
    /// The next one, or the one before.
    pub to: String,
    /// The rate there over that of the best, less 1.
    pub change: f64,
}

/// Of rates that differ by less than this share the first is the best.
const EQUAL_SHARE: f64 = 0.001;

/// A step that costs this share is the edge of a cliff.
pub const CLIFF_SHARE: f64 = 0.1;

impl Tuned {
    /// The place of the best combination in [`Tuned::kb_per_s`].
    ///
    /// # Panics
    ///
    /// When nothing was tried.
    pub fn best(&self) -> usize {
        let mut best = 0;
        for (place, rate) in self.kb_per_s.iter().enumerate() {
            if *rate > self.kb_per_s[best] * (1.0 + EQUAL_SHARE) {
                best = place;
            }
        }
        best
    }

    /// The place of each key's value in a combination.
    pub fn places(&self, mut combination: usize) -> Vec<usize> {
        let mut places = vec![0; self.keys.len()];
        for (place, key) in places.iter_mut().zip(&self.keys).rev() {
            *place = combination % key.values.len();
            combination /= key.values.len();
        }
        places
    }

    /// The combination of these places.
    pub fn combination(&self, places: &[usize]) -> usize {
        let keys = self.keys.iter().zip(places);
        keys.fold(0, |sum, (key, place)| sum * key.values.len() + place)
    }

    /// The steps from the best combination to its neighbours.
    pub fn steps(&self) -> Vec<Step> {
        let best = self.best();
        let at_best = self.places(best);
        let mut steps = Vec::new();
        for (number, key) in self.keys.iter().enumerate() {
            let place = at_best[number];
            let below = place.checked_sub(1);
            let above = Some(place + 1).filter(|next| *next < key.values.len());
            for next in [below, above].into_iter().flatten() {
                let mut places = at_best.clone();
                places[number] = next;
                let rate = self.kb_per_s[self.combination(&places)];
                steps.push(Step {
                    path: key.path.clone(),
                    from: key.values[place].clone(),
                    to: key.values[next].clone(),
                    change: rate / self.kb_per_s[best] - 1.0,
                });
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuned(kb_per_s: &[f64]) -> Tuned {
        let key = |path: &str, values: &[&str]| Key {
            path: path.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        Tuned {
            what: "a test".to_owned(),
            keys: vec![key("a", &["1", "2"]), key("b", &["x", "y", "z"])],
            kb_per_s: kb_per_s.to_vec(),
        }
    }

    #[test]
    fn the_best_is_found_with_the_steps_around_it() {
        let tuned = tuned(&[1.0, 2.0, 3.0, 4.0, 100.0, 50.0]);
        assert_eq!(tuned.best(), 4);
        assert_eq!(tuned.places(4), [1, 1]);
        assert_eq!(tuned.combination(&[1, 1]), 4);
        let steps: Vec<_> = tuned
            .steps()
            .into_iter()
            .map(|step| (step.path, step.to, step.change))
            .collect();
        assert_eq!(
            steps,
            [
                ("a".to_owned(), "1".to_owned(), -0.98),
                ("b".to_owned(), "x".to_owned(), -0.96),
                ("b".to_owned(), "z".to_owned(), -0.5),
            ]
        );
    }

    #[test]
    fn of_equal_ones_the_first_is_the_best() {
        assert_eq!(tuned(&[5.0, 5.004, 5.0, 1.0, 1.0, 1.0]).best(), 0);
    }
}
