// Where judge and detectors draw a line, with the reason. Confidences of single rules and findings stand in their
// files; bounds of memory stand beside what they bound. `scripts/calibrate` shows what a change does to verdicts.
#pragma once

#include <chrono>
#include <cstdint>

namespace inquest::thresholds {

// The judge.
inline constexpr double kLeastConfidence =
    0.4;  ///< of a verdict: below, a guess is wrong about as often as it is right
inline constexpr double kLeastOfALone =
    0.25;  ///< of a hint that is lifted where it is the only candidate beside a sign of failure
inline constexpr double kLoneCandidate = 0.45;  ///< what it is lifted to: something has to be the cause
inline constexpr double kStuckInBootstrap =
    0.45;  ///< of a wrong path, where hosts bootstrap, none completes and nothing is done
inline constexpr double kStallAdds = 0.12;  ///< to a hint about the transport, where everybody is in and nothing moves
inline constexpr double kMostOfAStall = 0.6;  ///< it stays a hint: other defects stall alike
inline constexpr double kNeverCame =
    0.45;  ///< who is waited for again and again at the start, and the log holds nothing behind
inline constexpr double kStoppedAtWork =
    0.55;  ///< of a stop from outside that found the job at work and nothing wrong before
inline constexpr double kStoppedLate = 0.3;  ///< of one that found it waiting in vain: what it waited for is the story
inline constexpr double kOnlyStopped = 0.5;  ///< of a stop that is all there is
inline constexpr double kOfAWarning = 0.35;  ///< of what a program logs as a warning: it survives most of them
inline constexpr double kEndedWell = 0.9;  ///< an ending and nothing against it: what is printed nowhere cannot be seen
inline constexpr double kEndedWithScores =
    0.6;  ///< scores and nothing behind: a run can be cut there, or hang in what comes next
inline constexpr double kWellByItsEnd = 0.42;  ///< of what the last lines of a log weigh, where logs that were cut on
                                               ///< purpose have their part in the weights
inline constexpr double kCutOffByItsEnd =
    0.06;  ///< the same: hardly a job ended well of which a log ends so, unless somebody says it who knows
inline constexpr double kRival = 0.2;  ///< a candidate that is less sure by so much is still to be told apart
inline constexpr double kMayBeSecond =
    0.65;  ///< where another rank broke of something else and nothing says who was first: more than a guess, not sure
inline constexpr std::uint64_t kExcerptLines = 8;  ///< who hands over so few lines has cut out what went wrong
inline constexpr double kLeastOfAnExcerpt = 0.45;  ///< of the hint in them

// How far apart things may be that belong together.
inline constexpr double kOfTheWait =
    0.8;  ///< share of a wait that work fills: it began when the others were through with theirs
inline constexpr std::chrono::minutes kDeadBeforeMissed{
    30};  ///< a rank can be dead for so long before the others miss it
inline constexpr std::chrono::seconds kNoticedLate{
    30};  ///< the driver notices a lost GPU late, and clocks of two hosts differ
inline constexpr std::chrono::seconds kLoggedAtOnce{2};  ///< what a process does to itself
inline constexpr std::chrono::seconds kOneFault{
    5};  ///< Xids of one fault come together; a GPU that reports later is another's victim
inline constexpr std::chrono::seconds kContextSwitch{
    120};  ///< within which a GPU leaves a kernel that faulted, or its context switch times out
inline constexpr std::chrono::seconds kLinkThenDriver{
    120};  ///< from a broken PCIe link to the driver's word on the GPU behind it
inline constexpr std::chrono::seconds kAllGaveUpTogether{
    30};  ///< watchdogs poll; ranks that came together give up together
inline constexpr std::chrono::seconds kServerMaySilent{60};  ///< NFS prints it for every stutter
inline constexpr std::chrono::seconds kPortsComeUp{300};     ///< of a booting host
inline constexpr std::uint64_t kFewWords = 12;               ///< that others add behind a build's last line
inline constexpr std::uint64_t kFewLines = 40;               ///< a log that goes on for pages is not silent
inline constexpr std::uint64_t kTracebackLines = 40;         ///< between a call and the refusal that it died of
inline constexpr std::uint64_t kOnePcieReport = 30;          ///< lines from a port's report to the device's below it

// How much is too little, or enough.
inline constexpr double kStallBytesPerSecond = 0.1e9;  ///< below any working path, over the whole of a time-out
inline constexpr std::uint64_t kCallsAfterADifference =
    16;  ///< calls that differ hang or corrupt at once; who went on for so many lost a line of the log
inline constexpr std::int64_t kLeastShmBytes =
    std::int64_t{1} << 30;  ///< NCCL takes some ten MiB a rank, a data loader a batch for each worker
inline constexpr std::int64_t kLeastFreeShmBytes = std::int64_t{16} << 20;  ///< one rank's segments
inline constexpr int kUnderLoadPercent = 30;                                ///< an idle GPU lowers its links
inline constexpr int kSpinsPercent = 95,
                     kIdlePercent = 20;  ///< a kernel that waits in a collective spins; a GPU without one stands still
inline constexpr double kSpinsAtPower = 0.45;  ///< of its cap, at most: a kernel that only waits draws little

}  // namespace inquest::thresholds
