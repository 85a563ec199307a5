// Tests timestamps: each time has one representation, and timestamps are ordered.

import FirebaseCore
import Foundation
import Testing

@Suite("Timestamps", .timeLimit(.minutes(10)))
struct TimestampTests {
  @Test(
    "a date is converted to whole seconds and a non-negative fraction",
    arguments: [
      (0.0, 0, 0), (1.5, 1, 500_000_000), (-1.5, -2, 500_000_000), (-0.25, -1, 750_000_000),
      (1_700_000_000.125, 1_700_000_000, 125_000_000),
    ] as [(Double, Int64, Int32)])
  func fromDate(interval: Double, seconds: Int64, nanoseconds: Int32) {
    let timestamp = Timestamp(date: Date(timeIntervalSince1970: interval))
    #expect(timestamp.seconds == seconds)
    #expect(timestamp.nanoseconds == nanoseconds)
    #expect(timestamp.dateValue().timeIntervalSince1970 == interval)
  }

  @Test("timestamps are ordered by time and equal by value")
  func ordering() {
    let early = Timestamp(seconds: 1, nanoseconds: 2)
    let late = Timestamp(seconds: 1, nanoseconds: 3)
    #expect(early.compare(late) == .orderedAscending)
    #expect(late.compare(early) == .orderedDescending)
    #expect(early.compare(Timestamp(seconds: 1, nanoseconds: 2)) == .orderedSame)
    #expect(early == Timestamp(seconds: 1, nanoseconds: 2))
    #expect(Set([early, Timestamp(seconds: 1, nanoseconds: 2)]).count == 1)
    #expect(early.description == "<FIRTimestamp: seconds=1 nanoseconds=2>")
  }

  @Test("the current timestamp is between the clock's values before and after")
  func now() {
    let before = Date()
    let now = Timestamp().dateValue()
    #expect(now.timeIntervalSince(before) > -0.001)
    #expect(now.timeIntervalSince(Date()) < 0.001)
  }

  @Test("a value outside the years 1 to 9999 traps")
  func range() async {
    await #expect(processExitsWith: .failure) { _ = Timestamp(seconds: 0, nanoseconds: 1_000_000_000) }
    await #expect(processExitsWith: .failure) { _ = Timestamp(seconds: 253_402_300_800, nanoseconds: 0) }
    await #expect(processExitsWith: .failure) { _ = Timestamp(seconds: -62_135_596_801, nanoseconds: 0) }
    await #expect(processExitsWith: .success) { _ = Timestamp(seconds: -62_135_596_800, nanoseconds: 0) }
  }
}
