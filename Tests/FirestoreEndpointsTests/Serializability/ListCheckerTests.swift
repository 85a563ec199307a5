// Tests of the list checker: it detects each kind of anomaly in a history, and accepts serial histories.

import Testing

@Suite("List checker") struct ListCheckerTests {
  private func transaction(
    _ id: Int, reads: [ListKey: [Int64]] = [:], appends: [ListKey: Int64] = [:],
    _ outcome: ListTransaction.Outcome? = nil, from began: UInt64 = 0, to ended: UInt64 = .max
  ) -> ListTransaction {
    ListTransaction(
      id: id, reads: reads, appends: appends, outcome: outcome ?? .committed(at: Int64(id)), began: began,
      ended: ended)
  }

  private func kinds(_ transactions: [ListTransaction], _ final: [ListKey: [Int64]]) -> Set<Anomaly.Kind> {
    Set(ListChecker(transactions, final: final).anomalies.map(\.kind))
  }

  @Test("A serial history has no anomaly")
  func serial() {
    let history = [
      transaction(1, reads: [0: []], appends: [0: 1], from: 0, to: 1),
      transaction(2, reads: [0: [1], 1: []], appends: [0: 2, 1: 3], from: 2, to: 3),
      transaction(3, reads: [0: [1, 2], 1: [3]], from: 4, to: 5),
      transaction(4, appends: [1: 4], .aborted), transaction(5, appends: [1: 5], .unknown),
    ]
    #expect(kinds(history, [0: [1, 2], 1: [3]]) == [])
    #expect(kinds(history, [0: [1, 2], 1: [3, 5]]) == [])
  }

  @Test("Lost updates, write skew, phantoms and stale reads are cycles")
  func cycles() {
    let lostAppends = [
      transaction(1, reads: [0: []], appends: [0: 1]), transaction(2, reads: [0: []], appends: [0: 2]),
    ]
    #expect(kinds(lostAppends, [0: [1, 2]]).contains(.cycle))
    #expect(kinds(lostAppends, [0: [2]]).contains(.lostAppend))
    let skew = [
      transaction(1, reads: [0: [], 1: []], appends: [0: 1]),
      transaction(2, reads: [0: [], 1: []], appends: [1: 2]),
    ]
    #expect(kinds(skew, [0: [1], 1: [2]]).contains(.cycle))
    let readOnly = [
      transaction(1, appends: [0: 1]), transaction(2, appends: [1: 2]),
      transaction(3, reads: [0: [1], 1: []]), transaction(4, reads: [0: [], 1: [2]]),
    ]
    #expect(kinds(readOnly, [0: [1], 1: [2]]).contains(.cycle))
    let stale = [
      transaction(1, appends: [0: 1], from: 0, to: 1), transaction(2, reads: [0: []], from: 2, to: 3),
    ]
    #expect(kinds(stale, [0: [1]]).contains(.cycle))
  }

  @Test("Aborted reads, duplicates, partial commits and wrong orders are reported by kind")
  func lists() {
    #expect(kinds([transaction(1, appends: [0: 1], .aborted)], [0: [1]]).contains(.abortedRead))
    #expect(kinds([transaction(1, reads: [0: [9]])], [0: []]).contains(.abortedRead))
    #expect(kinds([transaction(1, appends: [0: 1])], [0: [1, 1]]).contains(.duplicate))
    #expect(kinds([transaction(1, appends: [0: 1, 1: 2], .unknown)], [0: [1], 1: []]).contains(.partial))
    let reordered = [
      transaction(1, appends: [0: 1]), transaction(2, appends: [0: 2]), transaction(3, reads: [0: [2]]),
    ]
    #expect(kinds(reordered, [0: [1, 2]]).contains(.incompatibleOrder))
    let times = [
      transaction(2, appends: [0: 1]), transaction(1, reads: [0: [1]], appends: [1: 2]),
    ]
    #expect(kinds(times, [0: [1], 1: [2]]).contains(.commitTime))
  }
}
