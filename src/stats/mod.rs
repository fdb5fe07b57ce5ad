//! Estimates and how sure they are (MODEL.md §6).
//!
//! Sessions are independent, so a mean has the standard error `sd/√n` and a Student interval, a quantile the
//! distribution-free interval between two order statistics, and a ratio of two sums (duplicates per call: calls within
//! a session are not independent) the standard error of the delta method over sessions.
//!
//! **Quantile**, here and in every report, is the nearest rank: the smallest value that at least a share `p` of the
//! sample doesn't exceed (type 1 of Hyndman and Fan 1996).

mod about;
mod columns;
mod figure;
mod fleet;
mod growth;
mod histogram;
mod metric;
mod moments;
mod needs;
mod nodes;
mod paired;
mod quantile;
mod question;
mod sample;
mod statistic;
mod stopping;
mod store;
mod summary;
mod threshold;
mod watched;

pub use figure::Figure;
pub use fleet::{Bottleneck, FleetSummary, LimitSummary, Place, Series, SeriesKind, StationSummary, fleet_sessions};
pub use growth::Growth;
pub use histogram::{differ_by_magnitudes, steps};
pub use metric::{Metric, Quantity, Rate, Unit};
pub use moments::{Covariance, Estimate, Moments, half_width, normal_score};
pub use needs::Needs;
pub use nodes::NodeSummary;
pub use paired::{Costs, Paired, QuantileDifference, is_decided};
pub use quantile::{QUANTILES, QuantileEstimate, quantile_name, quantile_ranks};
pub use question::{Question, QuestionError, Seen, Side, gap};
pub use sample::{MOST_EXACT_SESSIONS, Sample, Sources, Stopped, Times};
pub(crate) use statistic::or_list;
pub use statistic::{Reading, Statistic, StatisticError};
pub use stopping::{Target, next_size};
pub use summary::{MetricSummary, Summary, TurnMetric};
pub use threshold::{Goal, Threshold, ThresholdError, Verdict};
