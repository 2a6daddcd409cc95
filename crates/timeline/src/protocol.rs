//! Repetition protocol of a program: the number of repetitions and the statistic that combines
//! them.

use serde::{Deserialize, Serialize};

/// Statistic that represents all repetitions that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SummaryStatistic {
    /// Median of the elapsed times of the repetitions.
    Median,
    /// Shortest elapsed time of the repetitions, as in Zachariassen 1987.
    Minimum,
}

/// Number of repetitions of a program, and the rules that select those that count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Protocol {
    /// Total number of repetitions, including the discarded ones; at least `discarded + 1`.
    #[serde(rename = "repetitions")]
    pub repetition_count: u32,
    /// Number of leading repetitions that run but do not count.
    #[serde(rename = "discarded")]
    pub discarded_count: u32,
    /// Statistic that represents the repetitions that count.
    pub statistic: SummaryStatistic,
    /// Relative width of the 95 % interval of the elapsed time below which a program stops before
    /// `repetitions`. For example, 0.02 is one percent to each side.
    pub stop_below_share: Option<f64>,
    /// Rule for steady state that stops a program before `repetitions`. Only the repetitions in the
    /// rule's window count then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "steady")]
    pub steady_rule: Option<SteadyRule>,
}

/// Rule for steady state of storage: the rates of the last rounds differ little and have little
/// slope (SNIA's Solid State Storage Performance Test Specification).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyRule {
    /// Number of last rounds that the rule examines; at least two.
    #[serde(rename = "window")]
    pub window_rounds: u32,
    /// Maximum difference between the largest and the smallest rate, as a share of their mean.
    pub excursion_share: f64,
    /// Maximum rise or fall of the line through the rates over the window, as a share of their
    /// mean.
    pub slope_share: f64,
}

/// Error for a text that is not a rule for steady state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a steady-state rule: write ROUNDS,EXCURSION,SLOPE, as in 5,20%,10% (2 to 1000 rounds, shares above 0 % up to 100 %)"
)]
pub struct SteadyRuleError(pub String);

impl SteadyRule {
    /// SNIA's rule for steady state: five rounds that lie within 20 % of their mean, and whose line
    /// changes by at most 10 % of it.
    pub const SNIA_RULE: Self = Self {
        window_rounds: 5,
        excursion_share: 0.2,
        slope_share: 0.1,
    };

    /// Number of rounds after which SNIA permits a test without steady state to end.
    pub const ROUNDS_MAX: u32 = 25;

    /// Parses a rule from `ROUNDS,EXCURSION,SLOPE`, such as `5,20%,10%`. Missing parts have SNIA's
    /// values.
    ///
    /// # Errors
    ///
    /// The text is unreadable, has fewer than two rounds, or has an invalid share.
    pub fn parse_rule(text: &str) -> Result<Self, SteadyRuleError> {
        let wrong = || SteadyRuleError(text.to_owned());
        let mut parts = text.split(',').map(str::trim);
        let mut rule = Self::SNIA_RULE;
        if let Some(window) = parts.next().filter(|part| !part.is_empty()) {
            rule.window_rounds = window.parse().map_err(|_| wrong())?;
        }
        for share in [&mut rule.excursion_share, &mut rule.slope_share] {
            let Some(part) = parts.next() else { continue };
            let percent = part.strip_suffix('%').ok_or_else(wrong)?;
            let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
            *share = percent / 100.0;
        }
        let sane = parts.next().is_none() && rule.is_valid();
        sane.then_some(rule).ok_or_else(wrong)
    }

    /// Reports whether the limits are valid, so that rounds can both meet and miss them.
    pub fn is_valid(&self) -> bool {
        let shares = [self.excursion_share, self.slope_share];
        let share = |share: f64| share > 0.0 && share <= 1.0;
        (2..=1000).contains(&self.window_rounds) && shares.into_iter().all(share)
    }
}

/// State of the page cache for a program's reads: cold, warm or bypassed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheMode {
    /// Cold cache: files are synced and dropped from the page cache before each repetition.
    Cold,
    /// Warm cache: files are read into the page cache, and proven to be there, before each
    /// repetition.
    Warm,
    /// Direct I/O (`O_DIRECT`): the page cache is not used.
    Direct,
}

impl CacheMode {
    /// Returns the name of the cache mode on the command line and in tables.
    pub fn mode_name(self) -> &'static str {
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
            window_rounds: window,
            excursion_share,
            slope_share,
        };
        for (text, expected) in [
            ("5,20%,10%", rule(5, 0.2, 0.1)),
            ("", SteadyRule::SNIA_RULE),
            ("3", rule(3, 0.2, 0.1)),
            (" 7 , 15 % ", rule(7, 0.15, 0.1)),
            ("1000,100%,0.5%", rule(1000, 1.0, 0.005)),
        ] {
            assert_eq!(SteadyRule::parse_rule(text), Ok(expected), "{text}");
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
            let error = SteadyRule::parse_rule(text).unwrap_err().to_string();
            assert!(error.contains("5,20%,10%"), "{text}: {error}");
        }
    }
}
