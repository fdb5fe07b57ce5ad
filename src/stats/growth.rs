//! Whether a fleet settles.

use super::fleet::{Bottleneck, Place, StationSummary, over};
use super::moments::Estimate;
use super::sample::Sample;
use crate::engine::{PIECES, Replication, StationRecord, Tally};
use crate::model::Fleet;

/// A fleet that doesn't settle.
#[derive(Debug, Clone)]
pub struct Growth {
    /// By how many grows what grows, an hour, over the last half of the time that was watched.
    pub per_hour: Estimate,
    /// Where the calls that wait grow though the sessions in progress don't, since these give up waiting; else it is the
    /// sessions that grow.
    pub waiting_at: Option<Place>,
    /// What is used up all the time. Where nothing is, the fleet may only not have settled yet.
    pub saturated: Option<Bottleneck>,
    /// Whether a replication was given up for it.
    pub given_up: bool,
}

impl Growth {
    /// Whether it goes on for all that can be seen; otherwise sessions only last long against the warm-up.
    pub fn is_unstable(&self) -> bool {
        self.saturated.is_some() || self.given_up
    }
}

/// A station whose servers are busy for so large a share of the time can't do what is asked of it.
pub(super) const SATURATED: f64 = 0.98;

/// With fewer sessions in progress than this chance alone moves them by a fifth.
const FEW_IN_PROGRESS: f64 = 400.0;

/// A fleet whose sessions in progress grow by more than this share of them over half of the time isn't settled.
const GROWN: f64 = 0.2;

/// The slope of values that are one step apart (least squares), a step.
fn slope(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let (middle, mean) = ((n - 1.0) / 2.0, values.iter().sum::<f64>() / n);
    let (mut xy, mut xx) = (0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        let x = index as f64 - middle;
        xy += x * (value - mean);
        xx += x * x;
    }
    xy / xx
}

/// Whether the sessions in progress, or the calls that wait somewhere, surely grow over the last half of the time that is
/// counted, and by no small part of what they are, though as many arrive as before.
pub(super) fn growth(
    fleet: &Fleet,
    replications: &[Replication<Sample>],
    busiest: Option<(Bottleneck, f64)>,
    stations: &[StationSummary],
) -> Option<Growth> {
    let given_up = replications.iter().any(|r| r.given_up_s.is_some());
    let saturated = busiest.filter(|(_, used)| *used > SATURATED).map(|(what, _)| what);
    let of_sessions = |per_hour: Estimate| Growth { per_hour, waiting_at: None, saturated, given_up };
    if given_up {
        let since_begin =
            |r: &Replication<Sample>| r.in_progress.level as f64 * 3600.0 / r.given_up_s.unwrap_or(fleet.horizon_s);
        return Some(of_sessions(over(replications.iter().map(since_begin))));
    }
    let half_s = f64::midpoint(fleet.horizon_s, fleet.warm_up_s);
    let goes_wrong = fleet.outages.iter().any(|outage| outage.until_s > half_s && outage.from_s < fleet.horizon_s);
    if !fleet.arrivals.is_steady() || goes_wrong {
        return None;
    }
    let half = LastHalf { from_s: half_s, until_s: fleet.horizon_s };
    // where requests are turned away at last, a queue doesn't grow for ever
    let has_end = |place: Place| stations.iter().any(|station| station.place == place && station.places.is_some());
    let has_end = matches!(busiest, Some((Bottleneck::Station(place), _)) if has_end(place));
    // what is used up all the time, while surely more comes than goes, isn't only busy
    let excess = over(replications.iter().map(|r| half.per_hour(r, half.sum(r, &r.arrived) - half.sum(r, &r.ended))));
    if saturated.is_some() && !has_end && excess.ci95[0] > 0.0 {
        return Some(of_sessions(excess));
    }
    let all: Vec<Vec<f64>> = replications
        .iter()
        .map(|r| half.levels(r, &r.in_progress.pieces_s))
        .filter(|levels| levels.len() > 2)
        .collect();
    let per_hour = over(all.iter().zip(replications).map(|(levels, r)| slope(levels) * 3600.0 / r.piece_s));
    let level = over(all.iter().map(|levels| levels.iter().sum::<f64>() / levels.len() as f64)).value;
    let risen = per_hour.value * (fleet.horizon_s - half_s) / 3600.0;
    // one replication has no interval: then the size alone decides
    let surely = per_hour.ci95[0] > 0.0 || (replications.len() == 1 && level > FEW_IN_PROGRESS);
    if surely && risen > GROWN * level {
        return Some(of_sessions(per_hour));
    }
    stations.iter().find_map(|station| waiting(station, replications, half))
}

/// The last half of the time that is counted, s.
#[derive(Clone, Copy)]
struct LastHalf {
    from_s: f64,
    until_s: f64,
}

impl LastHalf {
    /// The first piece of the horizon that lies in it.
    fn first(self, r: &Replication<Sample>) -> usize {
        (self.from_s / r.piece_s).ceil() as usize
    }

    fn sum(self, r: &Replication<Sample>, tally: &Tally) -> f64 {
        tally.pieces.iter().skip(self.first(r)).map(|count| f64::from(*count)).sum()
    }

    fn per_hour(self, r: &Replication<Sample>, count: f64) -> f64 {
        count * 3600.0 / (self.until_s - self.first(r) as f64 * r.piece_s)
    }

    /// Means over its pieces of what has these integrals, without the last piece, which may be shorter.
    fn levels(self, r: &Replication<Sample>, pieces_s: &[f64]) -> Vec<f64> {
        pieces_s.get(self.first(r)..PIECES - 1).unwrap_or_default().iter().map(|area| area / r.piece_s).collect()
    }
}

/// Whether the calls grow that wait at a station: nobody may wait for their answers any more, so that sessions don't.
fn waiting(station: &StationSummary, replications: &[Replication<Sample>], half: LastHalf) -> Option<Growth> {
    let is_full = station.utilisation.is_some_and(|used| used.value > SATURATED) && station.places.is_none();
    if !is_full {
        return None;
    }
    let here = || replications.iter().filter_map(|r| Some((r, r.stations.get(station.place.index())?)));
    let excess = |(r, s): (&Replication<Sample>, &StationRecord)| {
        let gone = [&s.turned_away, &s.down, &s.left, &s.served].map(|tally| half.sum(r, tally));
        half.per_hour(r, half.sum(r, &s.came) - gone.iter().sum::<f64>())
    };
    let per_hour = over(here().map(excess));
    let levels = here().map(|(r, s)| half.levels(r, &s.waiting.pieces_s));
    let level = over(levels.map(|levels| levels.iter().sum::<f64>() / levels.len() as f64)).value;
    let risen = per_hour.value * (half.until_s - half.from_s) / 3600.0;
    let surely = per_hour.ci95[0] > 0.0 || (replications.len() == 1 && level > FEW_IN_PROGRESS);
    let saturated = Some(Bottleneck::Station(station.place));
    (surely && risen > GROWN * level).then_some(Growth {
        per_hour,
        waiting_at: Some(station.place),
        saturated,
        given_up: false,
    })
}
