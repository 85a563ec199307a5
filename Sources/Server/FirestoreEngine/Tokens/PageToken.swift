// The token that continues a listing on its next page.
//
//     03 | version (8) | binding (8) | the last entry's path | code (16)
//
// The binding is a hash of the request's parameters. The code authenticates the token for its owner and its database:
// see `TokenSigner`.
//
// Invariant: a token is valid only for the caller that received it and for a request with the same parameters; only the
// page size may differ. With another order or collection, the last entry would not show which entries were delivered,
// and the listing would skip some silently.

import FirestoreModel
import OrderedStore

/// The position of the end of a page: the version that was listed, and the last entry.
struct PageToken {
  var binding: PageBinding
  var version: Version
  var last: ResourcePath

  private static let format: UInt8 = 3
  private static let headerBytes = 17

  init(of binding: PageBinding, version: Version, last: ResourcePath) {
    self.binding = binding
    self.version = version
    self.last = last
  }

  /// The token as hexadecimal text, since clients put it into URLs.
  func text(_ signer: TokenSigner, for owner: TokenOwner) -> String {
    var bytes = [PageToken.format]
    for number in [version.microseconds, binding.hash] {
      withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }
    var encoder = IndexKeyEncoder()
    encoder.append(last)
    bytes += encoder.bytes
    bytes += signer.code(of: bytes, .page, for: owner)
    return bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  /// Verifies and decodes a token.
  /// - Throws: INVALID_ARGUMENT if it was not issued to the owner, or belongs to another request.
  init(
    _ text: String, of binding: PageBinding, _ signer: TokenSigner, for owner: TokenOwner
  ) throws(FirestoreError) {
    let invalid = FirestoreError.invalidArgument("The page token is not valid.")
    guard let bytes = PageToken.bytes(text), bytes.count > PageToken.headerBytes + TokenSigner.codeBytes,
      bytes[0] == PageToken.format
    else { throw invalid }
    let contents = Array(bytes.dropLast(TokenSigner.codeBytes))
    guard signer.isValid(bytes.suffix(TokenSigner.codeBytes), of: contents, .page, for: owner) else {
      throw invalid
    }
    func number(_ range: Range<Int>) -> UInt64 { contents[range].reduce(0) { $0 << 8 | UInt64($1) } }
    guard number(9..<17) == binding.hash else {
      throw FirestoreError.invalidArgument(
        "The page token is not valid: all parameters but the page size must be those of the request that it answered."
      )
    }
    version = Version(microseconds: number(1..<9))
    self.binding = binding
    var decoder = IndexKeyDecoder(contents, from: PageToken.headerBytes)
    guard let path = decoder.path(), decoder.isAtEnd, !path.isEmpty else { throw invalid }
    last = path
  }

  /// The bytes of hexadecimal text; nil if it is not hexadecimal.
  private static func bytes(_ text: String) -> [UInt8]? {
    let digits = Array(text.utf8)
    guard digits.count.isMultiple(of: 2) else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits.count / 2)
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let byte = UInt8(String(decoding: digits[index..<index + 2], as: UTF8.self), radix: 16) else {
        return nil
      }
      bytes.append(byte)
    }
    return bytes
  }
}

/// A hash of a request's parameters without page size and page token.
struct PageBinding {
  private var state = FNV1a()

  /// The hash.
  var hash: UInt64 { state.value }

  /// - Parameter method: distinguishes the tokens of different methods.
  init(_ method: String) { add(method) }

  /// Adds a parameter. Parameters must be added in a fixed order.
  mutating func add(_ text: String) { add(text.utf8) }

  /// Adds a parameter and its length.
  mutating func add(_ bytes: some Collection<UInt8>) {
    state.add(bytes)
    withUnsafeBytes(of: UInt64(bytes.count).bigEndian) { state.add($0) }
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
