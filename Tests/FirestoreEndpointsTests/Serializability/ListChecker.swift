// Searches a history of list appends for violations of strict serializability, with the method of Elle (Kingsbury and
// Alvaro, VLDB 2020). The lists that transactions read yield the version order of each
// list. From it follow the edges of a graph:
//
//     ww  a's append immediately precedes b's in a list
//     wr  b read a list that ends with a's append
//     rw  a read a list, and b appended the next value
//     rt  a was acknowledged before b began
//
// No serial execution has a cycle of these edges. A query that did not find a list counts as a read of an empty list,
// so phantoms become rw edges.

/// Checks one history.
struct ListChecker {
  private let transactions: [ListTransaction]
  private let final: [ListKey: [Int64]]
  private var writer: [Int64: Int] = [:]
  private var orders: [ListKey: [Int64]] = [:]
  private(set) var anomalies: [Anomaly] = []

  /// - Parameters:
  ///   - transactions: all attempts.
  ///   - final: every list after the last transaction.
  init(_ transactions: [ListTransaction], final: [ListKey: [Int64]]) {
    self.transactions = transactions
    self.final = final
    for (index, transaction) in transactions.enumerated() {
      for value in transaction.appends.values { writer[value] = index }
    }
    findOrders()
    checkAppends()
    checkCycles()
    checkCommitTimes()
  }

  /// Whether a transaction was applied. With an unknown outcome, it was applied if one of its appends is in a list.
  private func wasApplied(_ index: Int) -> Bool {
    switch transactions[index].outcome {
    case .committed: true
    case .aborted: false
    case .unknown: transactions[index].appends.contains { final[$0.key]?.contains($0.value) == true }
    }
  }

  private mutating func report(_ kind: Anomaly.Kind, _ detail: String) {
    if anomalies.count < 20 { anomalies.append(Anomaly(kind: kind, detail: detail)) }
  }

  // MARK: Lists

  private mutating func findOrders() {
    orders = final
    for (key, list) in final where Set(list).count != list.count {
      report(.duplicate, "list \(key): \(list)")
    }
    for (index, transaction) in transactions.enumerated() where transaction.outcome != .aborted {
      for (key, list) in transaction.reads {
        let order = orders[key] ?? []
        if !order.starts(with: list) {
          report(.incompatibleOrder, "T\(index) read \(list) in list \(key), which became \(order)")
        }
        for value in list {
          guard let source = writer[value] else {
            report(.abortedRead, "T\(index) read \(value) in list \(key), which no transaction appended")
            continue
          }
          if transactions[source].outcome == .aborted {
            report(.abortedRead, "T\(index) read \(value) of T\(source), which was aborted")
          }
        }
      }
    }
  }

  private mutating func checkAppends() {
    for (index, transaction) in transactions.enumerated() {
      let visible = transaction.appends.filter { final[$0.key]?.contains($0.value) == true }
      switch transaction.outcome {
      case .committed:
        for (key, value) in transaction.appends where visible[key] == nil {
          report(.lostAppend, "\(value), which T\(index) appended to list \(key), is missing")
        }
      case .aborted:
        for (key, value) in visible {
          report(.abortedRead, "\(value) of aborted T\(index) is in list \(key)")
        }
      case .unknown:
        if !visible.isEmpty, visible.count < transaction.appends.count {
          report(.partial, "only \(visible) of T\(index)'s \(transaction.appends)")
        }
      }
    }
  }

  // MARK: Cycles

  private mutating func checkCycles() {
    var edges: [[(to: Int, kind: String)]] = Array(repeating: [], count: transactions.count)
    func add(_ from: Int, _ to: Int, _ kind: String) { if from != to { edges[from].append((to, kind)) } }
    for list in orders.values {
      for (value, next) in zip(list, list.dropFirst()) {
        if let a = writer[value], let b = writer[next] { add(a, b, "ww") }
      }
    }
    for (index, transaction) in transactions.enumerated() where wasApplied(index) {
      for (key, list) in transaction.reads {
        if let last = list.last, let source = writer[last] { add(source, index, "wr") }
        if let order = orders[key], order.count > list.count, let next = writer[order[list.count]] {
          add(index, next, "rw")
        }
      }
    }
    // Finds the real-time edges. The frontier contains the ended transactions that precede no other ended transaction.
    var events: [(time: UInt64, isEnd: Bool, index: Int)] = []
    for (index, transaction) in transactions.enumerated() where wasApplied(index) {
      events.append((transaction.began, false, index))
      if case .committed = transaction.outcome { events.append((transaction.ended, true, index)) }
    }
    events.sort { ($0.time, $0.isEnd ? 1 : 0) < ($1.time, $1.isEnd ? 1 : 0) }
    var frontier: Set<Int> = []
    var frontierAtBegin: [Int: Set<Int>] = [:]
    for event in events {
      if event.isEnd {
        frontier.subtract(frontierAtBegin[event.index] ?? [])
        frontier.insert(event.index)
      } else {
        frontierAtBegin[event.index] = frontier
        for earlier in frontier { add(earlier, event.index, "rt") }
      }
    }
    for component in Self.components(edges.map { $0.map(\.to) }) where component.count > 1 {
      let members = Set(component)
      let described = component.sorted().prefix(6).map { from in
        let next = edges[from].filter { members.contains($0.to) }.map { "\($0.kind)→T\($0.to)" }
        return "T\(from) \(next.joined(separator: " "))"
      }
      report(.cycle, "\(component.count) transactions: \(described.joined(separator: "; "))")
    }
  }

  /// Returns the strongly connected components of a graph (Tarjan's algorithm without recursion).
  private static func components(_ edges: [[Int]]) -> [[Int]] {
    var numbers = [Int?](repeating: nil, count: edges.count)
    var lows = [Int](repeating: 0, count: edges.count)
    var isOnStack = [Bool](repeating: false, count: edges.count)
    var stack: [Int] = []
    var components: [[Int]] = []
    var next = 0
    for root in edges.indices where numbers[root] == nil {
      var calls: [(node: Int, edge: Int)] = [(root, 0)]
      while let (node, edge) = calls.last {
        if edge == 0 {
          numbers[node] = next
          lows[node] = next
          next += 1
          stack.append(node)
          isOnStack[node] = true
        }
        if edge < edges[node].count {
          calls[calls.count - 1].edge += 1
          let target = edges[node][edge]
          if let number = numbers[target] {
            if isOnStack[target] { lows[node] = min(lows[node], number) }
          } else {
            calls.append((target, 0))
          }
          continue
        }
        // All edges of the node are processed.
        calls.removeLast()
        if let parent = calls.last?.node { lows[parent] = min(lows[parent], lows[node]) }
        if lows[node] == numbers[node] {
          var component: [Int] = []
          while let member = stack.popLast() {
            isOnStack[member] = false
            component.append(member)
            if member == node { break }
          }
          components.append(component)
        }
      }
    }
    return components
  }

  // MARK: Commit times

  /// Checks that the order of commit times is a serial order: if the transactions with writes are replayed in this order, they
  /// read the same lists.
  private mutating func checkCommitTimes() {
    var commits: [(time: Int64, index: Int)] = []
    for (index, transaction) in transactions.enumerated() {
      if case .committed(let time) = transaction.outcome, !transaction.appends.isEmpty {
        commits.append((time, index))
      }
    }
    commits.sort { $0.time < $1.time }
    for (a, b) in zip(commits, commits.dropFirst()) where a.time == b.time {
      report(.commitTime, "T\(a.index) and T\(b.index) have the same commit time")
    }
    var times: [Int64: Int64] = [:]
    for (time, index) in commits { for value in transactions[index].appends.values { times[value] = time } }
    for (time, index) in commits {
      for (key, list) in transactions[index].reads {
        // The last value that the transaction read must have an earlier commit time, and the next value of the
        // list a later one. Transactions with an unknown outcome have no commit time, so they are not checked.
        if let last = list.last, let written = times[last], written >= time {
          report(.commitTime, "T\(index) read \(last) in list \(key), which is newer")
        }
        if let order = orders[key], order.count > list.count, let written = times[order[list.count]],
          written < time
        {
          report(.commitTime, "T\(index) did not read \(order[list.count]) in list \(key), which is older")
        }
      }
    }
  }
}
