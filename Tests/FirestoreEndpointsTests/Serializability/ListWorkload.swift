// The list workload: clients that run random transactions on a few lists concurrently.
//
// A transaction reads documents or ranges, and appends to lists that it read or did not read, in every concurrency mode.

import FirestoreEngine
import FirestoreModel
import Foundation
import NIOConcurrencyHelpers
import Testing

/// A pseudorandom generator with a seed (SplitMix64).
struct WorkloadRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}

/// Runs the clients and records their history.
final class ListWorkload: Sendable {
  /// The concurrency control of a transaction.
  enum Mode: CaseIterable {
    case pessimistic, optimistic, readOnly
    /// As in mobile SDKs: reads outside of a transaction, then a commit with preconditions.
    case preconditions
    /// Only appends by transforms, without reads.
    case blind
  }

  private let keys: Int
  private let history = NIOLockedValueBox<[ListTransaction]>([])
  private let nextValue = NIOLockedValueBox<Int64>(1)
  private let clock = SystemClock()
  private let committed = NIOLockedValueBox(0)

  init(keys: Int) { self.keys = keys }

  /// The number of acknowledged transactions.
  var commits: Int { committed.withLockedValue { $0 } }

  /// Runs clients concurrently, each until `isDone` or until `transactions` of its transactions were acknowledged.
  func run(
    clients: Int, transactions: Int, seed: UInt64, isDone: @escaping @Sendable () -> Bool = { false },
    _ store: @escaping @Sendable (Int) -> any ListStore
  ) async {
    await withTaskGroup(of: Void.self) { group in
      for client in 0..<clients {
        group.addTask {
          var random = WorkloadRandom(seed: seed &* 1_000 &+ UInt64(client))
          let store = store(client)
          var acknowledged = 0
          while acknowledged < transactions, !isDone(), !Task.isCancelled {
            let mode = Mode.allCases[random.below(Mode.allCases.count)]
            var retried: [UInt8]?
            for _ in 0..<5 {
              let (transaction, token) = await self.attempt(mode, store, &random, retrying: retried)
              self.history.withLockedValue { $0.append(transaction) }
              if case .committed = transaction.outcome {
                acknowledged += 1
                self.committed.withLockedValue { $0 += 1 }
                break
              }
              retried = retried ?? token
              if isDone() { break }
            }
          }
        }
      }
    }
  }

  /// Reads the final lists and checks the complete history.
  func check(_ store: any ListStore) async throws -> [Anomaly] {
    var final: [ListKey: [Int64]] = [:]
    for key in 0..<keys { final[key] = [] }
    for document in try await store.query(Lists.query, nil) {
      final[Lists.key(document.name)] = Lists.values(document)
    }
    return ListChecker(history.withLockedValue { $0 }, final: final).anomalies
  }

  // MARK: One transaction

  private func attempt(
    _ mode: Mode, _ store: any ListStore, _ random: inout WorkloadRandom, retrying: [UInt8]?
  ) async -> (ListTransaction, [UInt8]?) {
    var transaction = ListTransaction(id: 0)
    transaction.began = clock.now()
    var token: [UInt8]?
    var isCommitting = false
    do {
      switch mode {
      case .pessimistic: token = try await store.begin(.readWrite(retrying: retrying))
      case .optimistic: token = try await store.begin(.readWrite(concurrency: .optimistic))
      case .readOnly: token = try await store.begin(.readOnly())
      case .preconditions, .blind: break
      }
      var documents: [ListKey: Document] = [:]
      if mode != .blind {
        // Outside of a transaction, only a single read is consistent.
        for _ in 0..<(mode == .preconditions ? 1 : 1 + random.below(3)) {
          try await read(&transaction, &documents, mode, store, token, &random)
          if random.below(3) == 0 { await Task.yield() }
        }
      }
      let writes = writes(&transaction, documents, mode, &random)
      isCommitting = true
      let time = try await store.commit(writes, token)
      transaction.outcome = .committed(at: time)
    } catch let error as FirestoreError {
      switch error.code {
      case .aborted, .failedPrecondition, .alreadyExists, .notFound, .invalidArgument:
        transaction.outcome = .aborted
      default:
        // The response to a commit may be lost. Before the commit nothing was applied.
        transaction.outcome = isCommitting ? .unknown : .aborted
        await pause()
      }
      if !isCommitting, let token { try? await store.rollBack(token) }
      if error.code == .invalidArgument, !error.message.contains("transaction") {
        Issue.record("a request was rejected: \(error)")
      }
    } catch {
      transaction.outcome = isCommitting ? .unknown : .aborted
      await pause()
    }
    transaction.ended = clock.now()
    return (transaction, token)
  }

  /// Waits before the next attempt, since the server may be restarting.
  private func pause() async { try? await Task.sleep(for: .milliseconds(10)) }

  private func read(
    _ transaction: inout ListTransaction, _ documents: inout [ListKey: Document], _ mode: Mode,
    _ store: any ListStore, _ token: [UInt8]?, _ random: inout WorkloadRandom
  ) async throws {
    let found: [Document]
    // The lists that the read covers. A list without a document is empty.
    let coveredKeys: [ListKey]
    switch mode == .preconditions ? 0 : random.below(4) {
    case 0:
      coveredKeys = Array(Set((0...random.below(3)).map { _ in random.below(keys) })).sorted()
      found = try await store.get(coveredKeys.map(Lists.name), token)
    case 1:
      coveredKeys = Array(0..<keys)
      found = try await store.query(Lists.query, token)
    case 2:
      let group = random.below(3)
      coveredKeys = (0..<keys).filter { $0 % 3 == group }
      var query = Lists.query
      query.filter = .field(FieldFilter(Lists.group, .equal, .integer(Int64(group))))
      found = try await store.query(query, token)
    default:
      var query = Lists.query
      query.orderBy = [.init(Lists.count, random.below(2) == 0 ? .ascending : .descending)]
      query.limit = 1 + random.below(3)
      found = try await store.query(query, token)
      // A result with fewer lists than the query's limit covers all lists.
      coveredKeys = found.count < query.limit ?? 0 ? Array(0..<keys) : found.map { Lists.key($0.name) }
    }
    var lists: [ListKey: [Int64]] = [:]
    for document in found {
      lists[Lists.key(document.name)] = Lists.values(document)
      documents[Lists.key(document.name)] = document
    }
    for key in coveredKeys {
      let list = lists[key] ?? []
      if let earlier = transaction.reads[key], earlier != list {
        Issue.record("one transaction (\(mode)) read list \(key) as \(earlier) and as \(list)")
      }
      transaction.reads[key] = list
    }
  }

  private func writes(
    _ transaction: inout ListTransaction, _ documents: [ListKey: Document], _ mode: Mode,
    _ random: inout WorkloadRandom
  ) -> [Write] {
    guard mode != .readOnly else { return [] }
    var writes: [Write] = []
    if mode != .preconditions, mode != .blind, random.below(6) == 0 { return [] }
    let readKeys = transaction.reads.keys.sorted()
    for _ in 0...random.below(2) {
      let isBlind = mode == .blind || (mode != .preconditions && random.below(4) == 0)
      let key = isBlind || readKeys.isEmpty ? random.below(keys) : readKeys[random.below(readKeys.count)]
      guard transaction.appends[key] == nil else { continue }
      let value = nextValue.withLockedValue { next in
        defer { next += 1 }
        return next
      }
      transaction.appends[key] = value
      let group = Value.integer(Int64(key % 3))
      if let list = transaction.reads[key], !isBlind {
        let values = (list + [value]).map { Value.integer($0) }
        var write = Write(
          .update(
            Lists.name(key),
            fields: ["list": .array(values), "g": group, "n": .integer(Int64(values.count))]))
        if mode == .preconditions { write.precondition = precondition(documents[key]) }
        writes.append(write)
      } else {
        writes.append(
          Write(
            .update(Lists.name(key), fields: ["g": group]), mask: [Lists.group],
            transforms: [
              FieldTransform(Lists.list, .appendMissing([.integer(value)])),
              FieldTransform(Lists.count, .increment(1)),
            ]))
      }
    }
    if mode == .preconditions {
      for key in readKeys where transaction.appends[key] == nil {
        writes.append(Write(.verify(Lists.name(key)), precondition: precondition(documents[key])))
      }
    }
    return writes
  }

  private func precondition(_ document: Document?) -> Precondition {
    document.map { .updateTime($0.updateTime) } ?? .exists(false)
  }
}
