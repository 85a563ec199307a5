// Commit requests of many documents, encoded before the measurement starts and completed as they are sent. The
// load generator shares the machine with the server, and encoding a million documents takes long.

import FirestoreProtobuf
import NIOCore
import SwiftProtobuf

/// Requests that write the documents of a collection, 500 each. Each owner has 100 documents.
struct BulkRequests: Sendable {
  static let perRequest = 500
  static let perOwner = 100

  /// The offsets in the template of the bytes that differ between documents.
  private struct Offsets {
    var id: Int
    var title: Int
    var owner: Int
    var rank: Int
  }

  let count: Int
  /// The number of the first document.
  private let first: Int
  private let template: ByteBuffer
  private let offsets: [Offsets]

  private static let idDigits = 20
  private static let titleDigits = 9
  private static let ownerDigits = 6
  /// The lowest rank. It and all higher ranks take four bytes in protobuf encoding.
  private static let minimumRank = 1 << 21

  /// Makes requests that write `count` documents, a multiple of 500, with numbers from `first` on.
  init(count: Int, first: Int = 0) throws {
    precondition(count % Self.perRequest == 0)
    self.count = count
    self.first = first
    let id = String(repeating: "0", count: Self.idDigits)
    let title = "document " + String(repeating: "0", count: Self.titleDigits)
    let owner = Self.owner(0)
    var bytes: [UInt8] = try Google_Firestore_V1_CommitRequest.with {
      $0.database = BenchmarkDocument.database
    }.serializedBytes()
    var offsets: [Offsets] = []
    for seed in 0..<Self.perRequest {
      var fields = BenchmarkDocument.fields(seed)
      fields["title"] = .with { $0.stringValue = title + " of the benchmark's collection" }
      fields["owner"] = .with { $0.stringValue = owner }
      fields["rank"] = .with { $0.integerValue = Int64(Self.minimumRank) }
      let write: [UInt8] = try Google_Firestore_V1_CommitRequest.with {
        $0.writes = [
          .with {
            $0.update = .with {
              $0.name = BenchmarkDocument.name(id)
              $0.fields = fields
            }
          }
        ]
      }.serializedBytes()
      func offset(after text: [UInt8], of length: Int) throws -> Int {
        guard let at = write.firstOffset(of: text) else {
          throw BenchmarkFailure("an encoded document lacks the bytes to fill in")
        }
        return bytes.count + at + text.count - length
      }
      // The tag of an integer, and the lowest rank in protobuf encoding.
      let rank: [UInt8] = [0x10, 0x80, 0x80, 0x80, 0x01]
      offsets.append(
        Offsets(
          id: try offset(after: Array(("items/" + id).utf8), of: Self.idDigits),
          title: try offset(after: Array(title.utf8), of: Self.titleDigits),
          owner: try offset(after: Array(owner.utf8), of: Self.ownerDigits),
          rank: try offset(after: rank, of: 4)))
      bytes += write
    }
    template = framed(bytes)
    self.offsets = offsets
  }

  /// The number of requests.
  var requests: Int { count / Self.perRequest }

  /// The number of owners.
  static func owners(of count: Int) -> Int { count / perOwner }

  /// The name of an owner.
  static func owner(_ number: Int) -> String {
    let digits = String(number)
    return "user-" + String(repeating: "0", count: ownerDigits - digits.utf8.count) + digits
  }

  /// One framed request. IDs are not in order, like IDs that clients make.
  func request(_ index: Int) -> ByteBuffer {
    var buffer = template
    let frame = buffer.readerIndex + 5
    for (position, offsets) in self.offsets.enumerated() {
      let number = first + index * Self.perRequest + position
      let scrambled = UInt64(truncatingIfNeeded: number) &* 0x9E37_79B9_7F4A_7C15
      buffer.setDigits(scrambled, at: frame + offsets.id, count: Self.idDigits)
      buffer.setDigits(UInt64(number), at: frame + offsets.title, count: Self.titleDigits)
      buffer.setDigits(
        UInt64(number % Self.owners(of: count)), at: frame + offsets.owner, count: Self.ownerDigits)
      let rank = Self.minimumRank + number
      for byte in 0..<4 {
        let bits = UInt8(rank >> (7 * byte) & 0x7F)
        buffer.setInteger(byte < 3 ? bits | 0x80 : bits, at: frame + offsets.rank + byte)
      }
    }
    return buffer
  }
}

extension ByteBuffer {
  /// Overwrites bytes with the last digits of a number.
  mutating func setDigits(_ number: UInt64, at index: Int, count: Int) {
    var rest = number
    for place in (index..<(index + count)).reversed() {
      setInteger(UInt8(ascii: "0") + UInt8(rest % 10), at: place)
      rest /= 10
    }
  }
}

extension [UInt8] {
  /// The offset of the first occurrence of some bytes.
  func firstOffset(of pattern: [UInt8]) -> Int? {
    guard count >= pattern.count else { return nil }
    return (0...(count - pattern.count)).first { self[$0..<($0 + pattern.count)].elementsEqual(pattern) }
  }
}
