//! The search for how far to read ahead: of sequences and of the other reads of
//! each class, one of these at a time.
//!
//! From the distance in use the next one is tried over some commands, and so on
//! while that leads somewhere, then the other way: what is clearly worse is met
//! once, and not for long. Then the best is tried again, until it still is the
//! best after some trials. What a distance is worth is how much the drive gets
//! done with it, for whomever. Where one sequence is read alone that is
//! exact, and every percent counts; elsewhere it varies, and what is begun with
//! is left only for a gain that shows. When what gets done changes later, it all
//! is tried again.

use super::super::policy::AccessClass;
use diskperf_sim::Time;

/// What a distance is chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Reads of a sequence that has the drive to itself.
    Stream(AccessClass),
    /// Reads of one that has not.
    Shared(AccessClass),
    /// Others.
    Other(AccessClass),
}

impl Kind {
    const COUNT: usize = 3 * AccessClass::ALL.len();

    /// Whether an index is that of [`Kind::Shared`].
    fn is_shared(index: usize) -> bool {
        (AccessClass::ALL.len()..2 * AccessClass::ALL.len()).contains(&index)
    }

    fn index(self) -> usize {
        match self {
            Self::Stream(class) => class as usize,
            Self::Shared(class) => AccessClass::ALL.len() + class as usize,
            Self::Other(class) => 2 * AccessClass::ALL.len() + class as usize,
        }
    }
}

/// Distances that are tried, in sectors.
const DISTANCES: [u32; 6] = [0, 10, 30, 60, 100, 244];

/// The places of those that are begun with: of one sequence about half a track;
/// of several about as much as passes while the arm comes back and the platter
/// turns to it, so that at least half of the time is spent reading; of other
/// reads none.
const OF_STREAMS: usize = 2;
const OF_SHARED: usize = 4;
const OF_OTHERS: usize = 0;

/// How much a trial lasts, in [`Trial::work`] of so many tracks, and what goes
/// before it, in which what the distance before it has left is used up.
const TRIAL_TRACKS: u64 = 48;
const SETTLING_TRACKS: u64 = 6;

/// The longest trial in shortest ones.
const LONGEST_TRIAL: u64 = 4;

/// How often each sequence that goes on has to come to the end of what was read
/// ahead of it.
const TRIAL_CYCLES: u64 = 2;

/// Commands of each.
const TRIAL_COMMANDS: u64 = 8;

/// A kind is worth a search if it has at least one in so many of the commands.
const WORTH: u64 = 8;

/// The best is tried so often before it is taken for it: what is picked as the
/// best of several was lucky more often than not.
const SURE_TRIALS: u32 = 3;

/// Commands that show that a stream went on elsewhere: the one that goes there,
/// and one that may have been given before that was finished.
const ELSEWHERE: u32 = 2;

/// Of one sequence a distance is worse than another, if the drive gets less done by
/// this share, and of two that are no further apart than the other share, the
/// shorter is taken.
const WORSE: f64 = 0.02;
const AS_GOOD: f64 = 0.01;

/// Elsewhere trials differ by as much as this by chance, and by who is at work:
/// what is begun with is left only for what gains more.
const GAIN: f64 = 0.08;

/// What the drive gets done has changed if it is off by so much, in so many
/// trials in a row: one may have met a seek, or a while without commands.
const CHANGED: f64 = 0.15;
const CHANGED_TRIALS: u32 = 3;

/// How much one trial more counts in what is expected.
const NEWS: f64 = 0.3;

/// A trial ends half-way, if less than this share of the best gets done.
const HOPELESS: f64 = 0.7;

/// The search of one drive.
#[derive(Clone, Debug)]
pub(super) struct Search {
    /// The places of the distances in use, by [`Kind::index`].
    places: [usize; Kind::COUNT],
    /// Whether each has been searched for.
    searched: [bool; Kind::COUNT],
    state: State,
    trial: Trial,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Nothing is being tried; what a trial is expected to come to, if that is
    /// known, and trials in a row that came to something else.
    Settled(Option<(f64, u32)>),
    /// The distances of one kind are tried.
    Trying(Climb),
}

/// The distances of one kind, while they are tried.
#[derive(Clone, Copy, Debug)]
struct Climb {
    /// [`Kind::index`].
    kind: usize,
    /// The place that was begun with.
    from: usize,
    /// The sum of the rates with each that was tried, and of how many trials.
    rates: [(f64, u32); DISTANCES.len()],
    way: Way,
    /// Whether there is nothing more to try that way.
    longer: bool,
    shorter: bool,
    /// Whether every trial so far was steady.
    steady: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Longer,
    Shorter,
    /// The best is tried again.
    Again,
}

/// A trial under way.
#[derive(Clone, Copy, Debug, Default)]
struct Trial {
    /// When what counts began; none while the distance before it is used up.
    since: Option<Time>,
    /// What was asked for since then, or before: sectors, and for each command
    /// a track, as long as it would take without a cache.
    work: u64,
    commands: u64,
    /// Sectors of sequences, and the most sequences that went on.
    sequence_sectors: u64,
    sequences: u64,
    /// Of these, by [`Kind::index`].
    of_kind: [u64; Kind::COUNT],
    /// When the last command came, and for how many more the time is not the
    /// distance's: where a stream goes on elsewhere, the arm has to go there.
    last: Time,
    elsewhere: u32,
    /// How long that was, and what was asked for then.
    excluded: Time,
    excluded_work: u64,
}

impl Default for Search {
    fn default() -> Self {
        let mut places = [OF_OTHERS; Kind::COUNT];
        for class in AccessClass::ALL {
            places[Kind::Stream(class).index()] = OF_STREAMS;
            places[Kind::Shared(class).index()] = OF_SHARED;
        }
        Self {
            places,
            searched: [false; Kind::COUNT],
            state: State::Settled(None),
            trial: Trial::default(),
        }
    }
}

impl Search {
    /// How far ahead of a read of this kind to read.
    pub(super) fn distance(&self, kind: Kind) -> u32 {
        DISTANCES[self.places[kind.index()]]
    }

    /// A command has come, of so many sectors; a read of some kind, or a write.
    pub(super) fn count(
        &mut self,
        (now, track_sectors): (Time, u32),
        sectors: u64,
        kind: Option<(Kind, u64)>,
    ) {
        let track = u64::from(track_sectors);
        match self.trial.since {
            None if self.trial.work >= SETTLING_TRACKS * track => {
                self.trial = Trial {
                    since: Some(now),
                    last: now,
                    ..Trial::default()
                };
            }
            Some(since) => {
                let rate = self.trial.rate(now - since);
                if self.is_long_enough(track, sectors) || self.is_hopeless(track, rate) {
                    let trial = std::mem::take(&mut self.trial);
                    self.judge(trial, rate);
                }
            }
            _ => {}
        }
        self.trial.commands += 1;
        self.trial.work += sectors + track;
        if self.is_elsewhere(now, kind) {
            self.trial.excluded_work += sectors + track;
        }
        if let Some(kind) = kind {
            let (kind, sequences) = kind;
            self.trial.of_kind[kind.index()] += 1;
            self.trial.sequences = self.trial.sequences.max(sequences);
            self.trial.sequence_sectors += if sequences > 0 { sectors } else { 0 };
        }
    }

    /// Whether a command, and the time since the last one, does not count in the
    /// trial.
    fn is_elsewhere(&mut self, now: Time, kind: Option<(Kind, u64)>) -> bool {
        let since = now - std::mem::replace(&mut self.trial.last, now);
        let of_stream =
            matches!(self.state, State::Trying(climb) if climb.kind < AccessClass::ALL.len());
        if !of_stream {
            return false;
        }
        let elsewhere = self.trial.elsewhere > 0;
        if elsewhere {
            self.trial.elsewhere -= 1;
            self.trial.excluded += since;
        }
        if matches!(kind, Some((Kind::Other(_), _))) {
            self.trial.elsewhere = ELSEWHERE;
        }
        elsewhere
    }

    /// Commands since the trial, or what goes before it, began.
    pub(super) fn commands(&self) -> u64 {
        self.trial.commands
    }

    /// Whether a trial says something, when a command of so many sectors comes.
    fn is_long_enough(&self, track: u64, sectors: u64) -> bool {
        let least = TRIAL_TRACKS * track;
        if self.trial.work < least {
            return false;
        }
        let kinds = self.places.iter().zip(self.trial.of_kind);
        let used = kinds.filter(|(_, commands)| *commands > 0);
        let longest = used.map(|(place, _)| DISTANCES[*place]).max();
        // In so many sectors of theirs each sequence comes once to the end of
        // what was read ahead of it: in part of that, some do and some do not.
        let cycle = self.trial.sequences * (u64::from(longest.unwrap_or(0)) + sectors);
        let whole = self.trial.sequence_sectors % cycle.max(1) < sectors;
        let enough =
            whole && self.trial.sequence_sectors >= TRIAL_CYCLES * cycle && self.is_of_each();
        // Short sequences may never come to that.
        enough || self.trial.work >= LONGEST_TRIAL * least
    }

    /// Whether what is tried is so much worse than the best that half a trial
    /// says so.
    fn is_hopeless(&self, track: u64, rate: f64) -> bool {
        let State::Trying(climb) = self.state else {
            return false;
        };
        2 * self.trial.work >= TRIAL_TRACKS * track
            && self.is_of_each()
            && rate < HOPELESS * climb.most()
    }

    /// Whether each sequence that goes on had its turns.
    fn is_of_each(&self) -> bool {
        self.trial.commands >= TRIAL_COMMANDS * self.trial.sequences
    }

    /// A trial has ended with this rate: what is next.
    fn judge(&mut self, trial: Trial, rate: f64) {
        match self.state {
            State::Trying(climb) => self.climb(climb, trial, rate),
            State::Settled(known) => self.settled(trial, rate, known),
        }
    }

    fn settled(&mut self, trial: Trial, rate: f64, known: Option<(f64, u32)>) {
        let open = |kind: &usize| !self.searched[*kind] && trial.is_worth(*kind);
        if let Some(kind) = (0..Kind::COUNT).find(open) {
            self.state = State::Trying(Climb {
                kind,
                from: self.places[kind],
                rates: [(0.0, 0); DISTANCES.len()],
                // Of sequences that share the drive, what is much too long costs
                // all of them.
                way: match Kind::is_shared(kind) {
                    true => Way::Shorter,
                    false => Way::Longer,
                },
                longer: false,
                shorter: false,
                steady: true,
            });
            return;
        }
        let (expected, off) = known.unwrap_or((rate, 0));
        if (rate / expected - 1.0).abs() <= CHANGED {
            let expected = expected + (rate - expected) * NEWS;
            self.state = State::Settled(Some((expected, 0)));
        } else if off + 1 < CHANGED_TRIALS {
            self.state = State::Settled(Some((expected, off + 1)));
        } else {
            self.searched = [false; Kind::COUNT];
            self.state = State::Settled(None);
        }
    }

    /// A distance has been tried.
    fn climb(&mut self, mut climb: Climb, trial: Trial, rate: f64) {
        if !trial.is_worth(climb.kind) {
            // What it was tried for is over.
            self.end(climb, climb.from, false);
            return;
        }
        climb.steady &= trial.is_steady();
        let place = self.places[climb.kind];
        climb.rates[place].0 += rate;
        climb.rates[place].1 += 1;
        climb.turn(place);
        let tried = |place: &usize| climb.tried(*place);
        let next = match climb.way {
            Way::Longer => (0..DISTANCES.len()).rfind(tried).map(|last| last + 1),
            Way::Shorter => (0..DISTANCES.len()).find(tried).map(|first| first - 1),
            Way::Again => Some(climb.best()),
        };
        let next = next.expect("the one that was begun with has been tried");
        let again = climb.way == Way::Again;
        let sure = climb.rates[next].1 == SURE_TRIALS || (next == climb.from && !climb.steady);
        if again && sure {
            self.end(climb, next, true);
        } else {
            self.places[climb.kind] = next;
            self.state = State::Trying(climb);
        }
    }

    fn end(&mut self, climb: Climb, place: usize, searched: bool) {
        self.places[climb.kind] = place;
        self.searched[climb.kind] = searched;
        self.state = State::Settled(None);
    }
}

impl Trial {
    /// What was done in a second of so long a trial. Where going elsewhere is
    /// rare, it is left out; of short sequences it shows what was read ahead in
    /// vain.
    fn rate(&self, span: Time) -> f64 {
        let others: u64 = self.of_kind[2 * AccessClass::ALL.len()..].iter().sum();
        let (work, span) = match others * WORTH > self.commands {
            true => (self.work, span),
            false => (self.work - self.excluded_work, span - self.excluded),
        };
        work as f64 / span.seconds().max(1e-9)
    }

    /// Whether one sequence alone was read: nothing but the distance moves what
    /// gets done.
    fn is_steady(&self) -> bool {
        let others: u64 = self.of_kind[2 * AccessClass::ALL.len()..].iter().sum();
        self.sequences <= 1 && others * WORTH <= self.commands
    }

    /// Whether enough of its commands were of a kind.
    fn is_worth(&self, kind: usize) -> bool {
        self.of_kind[kind] * WORTH >= self.commands
    }
}

impl Climb {
    fn tried(&self, place: usize) -> bool {
        self.rates[place].1 > 0
    }

    /// What it came to on average with one that has been tried.
    fn rate(&self, place: usize) -> f64 {
        let (sum, trials) = self.rates[place];
        sum / f64::from(trials.max(1))
    }

    fn most(&self) -> f64 {
        let rates = (0..DISTANCES.len()).map(|place| self.rate(place));
        rates.fold(0.0, f64::max)
    }

    /// Chooses the way on, after a place has been tried.
    fn turn(&mut self, place: usize) {
        if self.is_worse(place) {
            match self.way {
                Way::Longer => self.longer = true,
                Way::Shorter => self.shorter = true,
                Way::Again => {}
            }
        }
        self.longer |= self.tried(DISTANCES.len() - 1);
        self.shorter |= self.tried(0);
        self.way = match (self.way, self.longer, self.shorter) {
            (Way::Again, _, _) | (_, true, true) => Way::Again,
            (Way::Longer, false, _) | (_, false, true) => Way::Longer,
            (Way::Shorter, _, false) | (_, true, false) => Way::Shorter,
        };
    }

    /// Whether going on beyond a place leads nowhere.
    fn is_worse(&self, place: usize) -> bool {
        let others = (0..DISTANCES.len()).filter(|other| *other != place);
        let most = others.map(|other| self.rate(other)).fold(0.0, f64::max);
        let margin = if self.steady { -WORSE } else { GAIN };
        self.rate(place) < most * (1.0 + margin)
    }

    /// Of one sequence the shortest distance that is as good as any; elsewhere the
    /// best, if it gains enough.
    fn best(&self) -> usize {
        if !self.steady {
            let best = (0..DISTANCES.len())
                .max_by(|one, other| self.rate(*one).total_cmp(&self.rate(*other)));
            let gains = |best: &usize| self.rate(*best) > self.rate(self.from) * (1.0 + GAIN);
            return best.filter(gains).unwrap_or(self.from);
        }
        let enough = self.most() * (1.0 - AS_GOOD);
        let good = |place: &usize| self.tried(*place) && self.rate(*place) >= enough;
        (0..DISTANCES.len()).find(good).unwrap_or(self.from)
    }
}
