// The token that continues a listing on its next page.
//
//     02 | version (8) | binding (8) | the last entry's path
//
// The binding is a hash of the request's parameters. Invariant: a token is valid only for a request with the
// same parameters; only the page size may differ. With another order or collection, the last entry would not
// show which entries were delivered, and the listing would skip some silently.

import FirestoreModel
import OrderedStore

/// The position of the end of a page: the version that was listed, and the last entry.
struct PageToken {
  var binding: PageBinding
  var version: Version
  var last: ResourcePath

  init(of binding: PageBinding, version: Version, last: ResourcePath) {
    self.binding = binding
    self.version = version
    self.last = last
  }

  /// The token as hexadecimal text, since clients put it into URLs.
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

  /// Decodes a token.
  /// - Throws: INVALID_ARGUMENT if it is not a token, or belongs to another request.
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

/// A hash of a request's parameters without page size and page token. It is the same in every process, unlike
/// Swift's `Hasher`.
struct PageBinding {
  private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325

  /// - Parameter method: distinguishes the tokens of different methods.
  init(_ method: String) { add(method) }

  /// Adds a parameter. Parameters must be added in a fixed order.
  mutating func add(_ text: String) { add(text.utf8) }

  /// FNV-1a over the parameter and its length. It detects accidental misuse, but not forgery. A forged token
  /// is harmless, since tokens grant no rights.
  mutating func add(_ bytes: some Collection<UInt8>) {
    for byte in bytes { mix(byte) }
    withUnsafeBytes(of: UInt64(bytes.count).bigEndian) { for byte in $0 { mix(byte) } }
  }

  mutating func add(_ consistency: ReadConsistency) {
    switch consistency {
    case .latest: add("latest")
    case .readTime(let time): add("at \(Version(time).microseconds)")
    case .transaction(let token): add(token)
    case .newTransaction: add("new")
    }
  }

  private mutating func mix(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
}

extension ListDocumentsRequest {
  /// The binding of the request's page tokens.
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
  /// The binding of the request's page tokens.
  var binding: PageBinding {
    var binding = PageBinding("ListCollectionIds")
    binding.add("\(parent)")
    binding.add(consistency)
    return binding
  }
}

extension PartitionQueryRequest {
  /// The binding of the request's page tokens.
  func binding(_ limits: FirestoreLimits) throws -> PageBinding {
    var binding = PageBinding("PartitionQuery")
    binding.add(try PreparedQuery(query, limits).normalized.canonicalForm)
    binding.add("\(count)")
    binding.add(consistency)
    return binding
  }
}
