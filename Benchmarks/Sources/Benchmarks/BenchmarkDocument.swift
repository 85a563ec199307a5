// The document of every Firestore measurement: about 300 bytes, eight indexed fields.

import FirestoreProtobuf
import NIOCore
import SwiftProtobuf

enum BenchmarkDocument {
  static let database = "projects/bench/databases/(default)"

  static let parent = database + "/documents"

  static func name(_ id: String, in collection: String = "items") -> String {
    "\(database)/documents/\(collection)/\(id)"
  }

  static func fields(_ seed: Int) -> [String: Google_Firestore_V1_Value] {
    func string(_ s: String) -> Google_Firestore_V1_Value { .with { $0.stringValue = s } }
    func integer(_ i: Int) -> Google_Firestore_V1_Value { .with { $0.integerValue = Int64(i) } }
    return [
      "title": string("Item number \(seed) of the benchmark's collection"),
      "owner": string("user-\(seed % 1000)"),
      "state": string(["open", "done", "late"][seed % 3]),
      "rank": integer(seed),
      "price": .with { $0.doubleValue = Double(seed) * 1.25 },
      "done": .with { $0.booleanValue = seed % 2 == 0 },
      "note": string("A sentence that stands for what people write into a task's note field."),
      "group": integer(seed % 100),
    ]
  }

  /// The query for an owner's documents.
  static func query(owner: String) -> Google_Firestore_V1_StructuredQuery {
    .with {
      $0.from = [.with { $0.collectionID = "items" }]
      $0.where = .with {
        $0.fieldFilter = .with {
          $0.field = .with { $0.fieldPath = "owner" }
          $0.op = .equal
          $0.value = .with { $0.stringValue = owner }
        }
      }
    }
  }

  static func message(name: String, seed: Int = 1) -> Google_Firestore_V1_Document {
    .with {
      $0.name = name
      $0.fields = fields(seed)
      $0.createTime = .with { $0.seconds = 1_700_000_000 }
      $0.updateTime = .with { $0.seconds = 1_700_000_000 }
    }
  }

  /// A framed Commit request that writes one document.
  static func commit(id: String, seed: Int, collection: String = "items") throws -> [UInt8] {
    let request = Google_Firestore_V1_CommitRequest.with {
      $0.database = database
      $0.writes = [
        .with {
          $0.update = .with {
            $0.name = name(id, in: collection)
            $0.fields = fields(seed)
          }
        }
      ]
    }
    return try request.serializedBytes()
  }
}

/// Commit requests, encoded before the measurement starts: the load generator shares the machine with the
/// server.
struct CommitRequests: Sendable {
  private static let digits = 20
  private let requests: [[UInt8]]
  private let offsets: [Int]

  /// Encodes requests that write `count` different documents.
  init(count: Int) throws {
    let id = String(repeating: "0", count: Self.digits)
    let pattern = Array(("items/" + id).utf8)
    var requests: [[UInt8]] = []
    var offsets: [Int] = []
    for seed in 0..<count {
      let request = try BenchmarkDocument.commit(id: id, seed: seed)
      guard let offset = request.firstOffset(of: pattern) else {
        throw BenchmarkFailure("the encoded request does not hold the document's id")
      }
      requests.append(request)
      offsets.append(offset + pattern.count - Self.digits)
    }
    self.requests = requests
    self.offsets = offsets
  }

  /// A framed request that writes its own document. IDs are not in order, like IDs that clients make.
  func request(_ number: Int) -> ByteBuffer {
    let index = number % requests.count
    var buffer = framed(requests[index])
    let scrambled = UInt64(truncatingIfNeeded: number) &* 0x9E37_79B9_7F4A_7C15
    buffer.setDigits(scrambled, at: buffer.readerIndex + 5 + offsets[index], count: Self.digits)
    return buffer
  }
}
