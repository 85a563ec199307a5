// The token that leads to a listing's next page.
//
//     02 | version (8) | binding (8) | the last entry's path
//
// It holds the version and the last entry, so that all pages show one state while history lasts and go on at the same
// place.
//
// Invariant: a token is good for the request that it answered alone, whatever the next page's size: in another order or
// collection the last entry says nothing about what was delivered, and entries would be left out without a word.

import FirestoreModel
import OrderedStore

/// Where a page ended.
struct PageToken {
  var binding: PageBinding
  var version: Version
  var last: ResourcePath

  init(of binding: PageBinding, version: Version, last: ResourcePath) {
    self.binding = binding
    self.version = version
    self.last = last
  }

  /// The token's text: hexadecimal, since clients put it into addresses.
  var text: String {
    var bytes: [UInt8] = [2]
    for number in [version.microseconds, binding.hash] {
      withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }
    var encoder = IndexKeyEncoder()
    encoder.append(last)
    bytes += encoder.bytes
    return bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  /// Reads a token.
  /// - Throws: INVALID_ARGUMENT if it is none, or one of another request.
  init(_ text: String, of binding: PageBinding) throws {
    let invalid = FirestoreError.invalidArgument("The page token is not valid.")
    let digits = Array(text.utf8)
    guard digits.count >= 36, digits.count.isMultiple(of: 2) else { throw invalid }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let byte = UInt8(String(decoding: digits[index..<index + 2], as: UTF8.self), radix: 16) else {
        throw invalid
      }
      bytes.append(byte)
    }
    func number(_ range: Range<Int>) -> UInt64 { bytes[range].reduce(0) { $0 << 8 | UInt64($1) } }
    guard bytes[0] == 2 else { throw invalid }
    guard number(9..<17) == binding.hash else {
      throw FirestoreError.invalidArgument(
        "The page token is not valid: all parameters but the page size must be those of the request that it answered."
      )
    }
    version = Version(microseconds: number(1..<9))
    self.binding = binding
    var decoder = IndexKeyDecoder(bytes, from: 17)
    guard let path = decoder.path(), decoder.isAtEnd, !path.isEmpty else { throw invalid }
    last = path
  }
}

/// What a request asks, but for the size and the place of its page, in eight bytes that are the same in every process.
struct PageBinding {
  private var fnv = FNV1a()

  var hash: UInt64 { fnv.hash }

  /// - Parameter method: tells one method's tokens from another's.
  init(_ method: String) { add(method) }

  /// Adds a parameter. Which one it is says its place.
  mutating func add(_ text: String) { add(text.utf8) }

  /// Adds a parameter and its length.
  mutating func add(_ bytes: some Collection<UInt8>) {
    fnv.add(bytes)
    withUnsafeBytes(of: UInt64(bytes.count).bigEndian) { fnv.add($0) }
  }

  mutating func add(_ consistency: ReadConsistency) {
    switch consistency {
    case .latest: add("latest")
    case .readTime(let time): add("at \(Version(time).microseconds)")
    case .transaction(let token): add(token)
    case .newTransaction: add("new")
    }
  }
}

extension ListDocumentsRequest {
  /// What its pages' tokens are bound to.
  var binding: PageBinding {
    var binding = PageBinding("ListDocuments")
    binding.add("\(parent)")
    binding.add(collectionID)
    binding.add(orderBy)
    binding.add(showMissing ? "missing" : "")
    binding.add(consistency)
    binding.add(mask == nil ? "whole" : "masked")
    for field in mask?.paths ?? [] { binding.add("\(field)") }
    return binding
  }
}

extension ListCollectionIDsRequest {
  /// What its pages' tokens are bound to.
  var binding: PageBinding {
    var binding = PageBinding("ListCollectionIds")
    binding.add("\(parent)")
    binding.add(consistency)
    return binding
  }
}

extension PartitionQueryRequest {
  /// What its pages' tokens are bound to.
  func binding(_ limits: FirestoreLimits) throws -> PageBinding {
    var binding = PageBinding("PartitionQuery")
    binding.add(try PreparedQuery(query, limits).normalized.canonicalForm)
    binding.add("\(count)")
    binding.add(consistency)
    return binding
  }
}
