// Invalid data from a server never traps: it becomes an error or the nearest valid value.

import FirebaseCore
import FirestoreModel
import Foundation
import GRPCFraming
import Testing

@testable import FirebaseFirestore

@Suite("Hostile servers") struct HostileServerTests {
  @Test("a status code outside the canonical ones is UNKNOWN", arguments: [UInt32.max, 1 << 31, 17])
  func unknownStatus(code: UInt32) {
    let error = FirestoreError(GRPCStatus(.init(rawValue: code), "odd"))
    #expect(error.code == .unknown && error.message == "odd")
  }

  @Test("every canonical status keeps its code")
  func canonicalStatus() {
    for code in 1...16 as ClosedRange<UInt32> {
      #expect(FirestoreError(GRPCStatus(.init(rawValue: code), "")).code.rawValue == Int32(code))
    }
  }

  @Test(
    "an out-of-range timestamp is clamped",
    arguments: [
      (Int64.min, Int32.min, -62_135_596_800, 0), (0, -1, 0, 0), (0, Int32.max, 0, 999_999_999),
      (Int64.max, Int32.max, 253_402_300_799, 999_999_999),
    ])
  func outOfRangeTimestamp(
    _ sent: Int64, _ sentNanoseconds: Int32, _ seconds: Int64, _ nanoseconds: Int32
  ) {
    let writer = UserDataWriter(firestore: TestClient.make(port: 1), serverTimestamps: .none)
    let value = writer.value(.timestamp(ModelTimestamp(seconds: sent, nanoseconds: sentNanoseconds)))
    #expect(
      value as? FirebaseCore.Timestamp == FirebaseCore.Timestamp(seconds: seconds, nanoseconds: nanoseconds))
  }
}
