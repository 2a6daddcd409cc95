//! How a program is repeated and how its repetitions become one figure.

use serde::{Deserialize, Serialize};

/// The statistic that stands for all kept repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// The median elapsed time.
    Median,
    /// The shortest elapsed time, as in Zachariassen 1987.
    Minimum,
}

/// How often a program runs and what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Protocol {
    /// Repetitions in all, the discarded ones included; at least `discarded + 1`.
    pub repetitions: u32,
    /// How many of the first are run but not counted.
    pub discarded: u32,
    /// What stands for the kept ones.
    pub statistic: Statistic,
    /// Stop before `repetitions` once the 95 % interval of the elapsed time
    /// is narrower than this share of it (0.02 is one percent to each side).
    pub stop_below_share: Option<f64>,
    /// Stop before `repetitions` once they are steady, by this rule; those of its window
    /// count then, and no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyRule>,
}

/// When storage is steady: the rates of its last rounds neither differ much nor have a
/// slope (SNIA's Solid State Storage Performance Test Specification).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyRule {
    /// Rounds that are looked at, the last ones; two at least.
    pub window: u32,
    /// The most that the largest of them is above the smallest, as a share of their mean.
    pub excursion_share: f64,
    /// The most that the line through them rises or falls over the window, as a share of
    /// their mean.
    pub slope_share: f64,
}

/// A text that is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no rule for steadiness: write ROUNDS,EXCURSION,SLOPE, as in 5,20%,10% (2 to 1000 rounds, shares above 0 % up to 100 %)"
)]
pub struct SteadyRuleError(pub String);

impl SteadyRule {
    /// Five rounds that lie within 20 % of their mean, and whose line does not change by
    /// more than 10 % of it.
    pub const SNIA: Self = Self {
        window: 5,
        excursion_share: 0.2,
        slope_share: 0.1,
    };

    /// The rounds after which SNIA lets one give up.
    pub const MOST_ROUNDS: u32 = 25;

    /// A rule from `ROUNDS,EXCURSION,SLOPE`, as in `5,20%,10%`; what is left out is SNIA's.
    ///
    /// # Errors
    ///
    /// What cannot be read, fewer than two rounds, and shares that are none.
    pub fn parse(text: &str) -> Result<Self, SteadyRuleError> {
        let wrong = || SteadyRuleError(text.to_owned());
        let mut parts = text.split(',').map(str::trim);
        let mut rule = Self::SNIA;
        if let Some(window) = parts.next().filter(|part| !part.is_empty()) {
            rule.window = window.parse().map_err(|_| wrong())?;
        }
        for share in [&mut rule.excursion_share, &mut rule.slope_share] {
            let Some(part) = parts.next() else { continue };
            let percent = part.strip_suffix('%').ok_or_else(wrong)?;
            let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
            *share = percent / 100.0;
        }
        let sane = parts.next().is_none() && rule.is_possible();
        sane.then_some(rule).ok_or_else(wrong)
    }

    /// Whether rounds can be steady by it, and unsteady.
    pub fn is_possible(&self) -> bool {
        let shares = [self.excursion_share, self.slope_share];
        let share = |share: f64| share > 0.0 && share <= 1.0;
        (2..=1000).contains(&self.window) && shares.into_iter().all(share)
    }
}

/// Whether a program's reads find their bytes in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheMode {
    /// Synced and dropped from the page cache before each repetition.
    Cold,
    /// Read into the page cache, and proven to be there, before each repetition.
    Warm,
    /// O_DIRECT: the page cache is not used.
    Direct,
}

impl CacheMode {
    /// The word of the command line and of the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::Direct => "direct",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SteadyRule;

    #[test]
    fn a_rule_is_read_as_it_is_written() {
        let rule = |window, excursion_share, slope_share| SteadyRule {
            window,
            excursion_share,
            slope_share,
        };
        for (text, expected) in [
            ("5,20%,10%", rule(5, 0.2, 0.1)),
            ("", SteadyRule::SNIA),
            ("3", rule(3, 0.2, 0.1)),
            (" 7 , 15 % ", rule(7, 0.15, 0.1)),
            ("1000,100%,0.5%", rule(1000, 1.0, 0.005)),
        ] {
            assert_eq!(SteadyRule::parse(text), Ok(expected), "{text}");
        }
        for text in [
            "1",
            "1001",
            "-5",
            "x",
            "5,20,10",
            "5,0%",
            "5,101%",
            "5,20%,NaN%",
            "5,20%,10%,1",
            "5,,10%",
        ] {
            let error = SteadyRule::parse(text).unwrap_err().to_string();
            assert!(error.contains("5,20%,10%"), "{text}: {error}");
        }
    }
}
