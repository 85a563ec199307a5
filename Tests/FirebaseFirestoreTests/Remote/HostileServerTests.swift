// Tests hostile servers: invalid data from a server never traps. It becomes an error or the nearest valid
// value.

import FirebaseCore
import FirestoreModel
import FirestoreProtobuf
import Foundation
import GRPCFraming
import SwiftProtobuf
import Testing

@testable import FirebaseFirestore

@Suite("Hostile servers") struct HostileServerTests {
  @Test("a status code that is not canonical becomes UNKNOWN", arguments: [UInt32.max, 1 << 31, 17])
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

  // MARK: Messages

  private static let database = DatabaseName(project: "test")
  private static let collection = ParentName(rootOf: database).collection("c")

  /// An engine that listens to a target with one document, and the target's number.
  private func listeningEngine() throws -> (SyncEngine, TargetID) {
    var engine = SyncEngine(persistence: MemoryPersistence(isEager: true), seed: 1)
    engine.enableNetwork()
    let query = ModelQuery(
      parent: ParentName(rootOf: Self.database), StructuredQuery(from: [.init("c")]))
    engine.listen(ListenerID(number: 1), to: ClientQuery(query), options: .init())
    engine.watchStreamOpened(1)
    let target = try #require(engine.listenTargets.keys.first)
    engine.watchReceived(1, .target(.init(kind: .add, targets: [target])))
    let document = CachedDocument(
      found: Self.collection.document("a"), fields: [:], version: .init(microseconds: 1), createTime: .epoch)
    engine.watchReceived(1, .document(document.name, document, updated: [target], removed: []))
    engine.watchReceived(1, .target(.init(kind: .current, targets: [target], resumeToken: [1])))
    engine.watchReceived(
      1,
      .target(.init(kind: .noChange, targets: [], resumeToken: [1], snapshotVersion: .init(microseconds: 1))))
    return (engine, target)
  }

  /// Encodes one field of a message: its number, and then its bytes with their length.
  private static func field(_ number: UInt64, _ body: [UInt8]) -> [UInt8] {
    varint(number << 3 | 2) + varint(UInt64(body.count)) + body
  }

  private static func varint(_ value: UInt64) -> [UInt8] {
    var (rest, bytes) = (value, [UInt8]())
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    return bytes + [UInt8(rest)]
  }

  /// Encodes a document with a field of nested lists or nested maps.
  private static func nestedDocument(of kind: UInt64, levels: Int) -> [UInt8] {
    let key = field(1, [97])
    // The innermost value is null.
    var prefixes: [[UInt8]] = [varint(11 << 3) + [0]]
    var length = prefixes[0].count
    func wrap(_ number: UInt64, after start: [UInt8] = []) {
      prefixes.append(start + varint(number << 3 | 2) + varint(UInt64(length)))
      length += prefixes[prefixes.count - 1].count
    }
    for _ in 0..<levels {
      if kind == 9 {
        wrap(1)
      } else {
        wrap(2, after: key)
        wrap(1)
      }
      wrap(kind)
    }
    wrap(2, after: key)
    wrap(2, after: field(1, Array(collection.document("a").description.utf8)))
    return prefixes.reversed().flatMap { $0 }
  }

  @Test("a document that is nested 100,000 levels deep causes an error", arguments: [UInt64(9), 6])
  func nestedDocument(kind: UInt64) throws {
    func change(levels: Int) throws -> WatchChange? {
      let response = Self.field(3, Self.field(1, Self.nestedDocument(of: kind, levels: levels)))
      return try WatchChange(
        Google_Firestore_V1_ListenResponse(serializedBytes: response), in: Self.database)
    }
    #expect(try change(levels: 15) != nil)
    #expect(throws: (any Error).self) { try change(levels: 100_000) }
  }

  @Test("names with 100,000 segments and invalid names cause errors or name no document")
  func longNames() {
    let root = ParentName(rootOf: Self.database).description
    for name in [
      root + String(repeating: "/c/d", count: 50_000), root + "/c", root, "", "/", root + "//",
      root + "/c/" + String(repeating: "x", count: 1 << 20),
      "projects/other/databases/(default)/documents/c/d",
    ] {
      let responses: [Google_Firestore_V1_ListenResponse] = [
        .with { $0.documentDelete.document = name }, .with { $0.documentRemove.document = name },
        .with { $0.documentChange.document.name = name },
      ]
      for response in responses { _ = try? WatchChange(response, in: Self.database) }
    }
  }

  @Test("a document of another database causes an error, in a listen and in a read")
  func otherDatabase() throws {
    let here = Self.collection.document("a").description
    let others = [
      "projects/other/databases/(default)/documents/c/a", "projects/test/databases/other/documents/c/a",
    ]
    for name in [here] + others {
      let changes: [Google_Firestore_V1_ListenResponse] = [
        .with { $0.documentDelete.document = name }, .with { $0.documentRemove.document = name },
        .with { $0.documentChange.document.name = name },
      ]
      let reads: [Google_Firestore_V1_BatchGetDocumentsResponse] = [
        .with { $0.found.name = name }, .with { $0.missing = name },
      ]
      func codes() -> Set<StatusCode?> {
        var codes: Set<StatusCode?> = []
        for change in changes {
          do throws(FirestoreError) {
            codes.insert(try WatchChange(change, in: Self.database) == nil ? .unknown : nil)
          } catch { codes.insert(error.code) }
        }
        for read in reads {
          switch Datastore.documents([read], in: Self.database) {
          case .success: codes.insert(nil)
          case .failure(let error): codes.insert(error.code)
          }
        }
        return codes
      }
      #expect(codes() == (name == here ? [nil] : [.internalError]), "\(name)")
    }
  }

  @Test("counts, targets and times that are out of range cause no trap")
  func extremeNumbers() throws {
    for number in [Int32.min, -1, 0, 1, Int32.max] {
      var (engine, target) = try listeningEngine()
      let responses: [Google_Firestore_V1_ListenResponse] = [
        .with {
          $0.filter.targetID = target
          $0.filter.count = number
        },
        .with {
          $0.filter.targetID = number
          $0.filter.count = .max
        },
        .with {
          $0.targetChange.targetIds = [number, number, target]
          $0.targetChange.targetChangeType = .reset
        },
        .with {
          $0.targetChange.targetIds = [number]
          $0.targetChange.targetChangeType = .current
        },
        .with {
          $0.documentDelete.document = Self.collection.document("a").description
          $0.documentDelete.removedTargetIds = [number, target]
          $0.documentDelete.readTime = .init(seconds: .max, nanos: number)
        },
        .with { $0.targetChange.readTime = .init(seconds: 31_556_952_000_000_000, nanos: number) },
        .with { $0.targetChange.readTime = .init(seconds: .min, nanos: number) },
        .with {
          $0.targetChange.targetIds = [target]
          $0.targetChange.targetChangeType = .remove
          $0.targetChange.cause.code = number
        },
      ]
      for response in responses {
        if let change = try WatchChange(response, in: Self.database) { engine.watchReceived(1, change) }
        _ = engine.takeActions()
      }
    }
  }

  @Test("a bloom filter with 2,147,483,647 hashes is ignored", .timeLimit(.minutes(1)))
  func expensiveBloomFilter() throws {
    var (engine, target) = try listeningEngine()
    let response = Google_Firestore_V1_ListenResponse.with {
      $0.filter.targetID = target
      $0.filter.count = 2
      $0.filter.unchangedNames.bits.bitmap = Data(repeating: 0xFF, count: 1_000)
      $0.filter.unchangedNames.hashCount = .max
    }
    engine.watchReceived(1, try #require(try WatchChange(response, in: Self.database)))
    engine.watchReceived(
      1, .target(.init(kind: .noChange, targets: [], snapshotVersion: .init(microseconds: 2))))
    let purposes = engine.takeActions().compactMap { action -> TargetPurpose? in
      if case .send(.watch, .addTarget(let data)) = action { data.purpose } else { nil }
    }
    #expect(purposes.last == .existenceFilterMismatch)
  }
}
