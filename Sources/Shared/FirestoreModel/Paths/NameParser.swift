// Parses full resource names, with Cloud Firestore's error messages.
//
// Invariant: the parsed names need no further validation, except for the parity of the path.

/// A cursor over the bytes of a full resource name. It avoids copies, since every write, read and listener parses
/// names.
struct NameParser {
  private let name: String
  private let kind: String
  private let end: Int
  private var index = 0

  init(_ name: String, kind: String) {
    var name = name
    name.makeContiguousUTF8()
    self.name = name
    self.kind = kind
    end = name.utf8.count
  }

  /// Reads `projects/{project}/databases/{database}`.
  mutating func database() throws(FirestoreError) -> DatabaseName {
    try literal("projects")
    try slash()
    let project = try segment()
    try slash()
    try literal("databases")
    try slash()
    return DatabaseName(project: project, database: try segment())
  }

  /// Reads `/documents` and everything after it.
  mutating func documents() throws(FirestoreError) -> ResourcePath {
    try slash()
    try literal("documents")
    var segments: [String] = []
    segments.reserveCapacity(4)
    while index != end {
      try slash()
      let start = index
      let id = try segment()
      if id == "." || id == ".." {
        throw .invalidArgument(
          "\(kind) \"\(name.echoed)\" contains a resource id \"\(id)\" at index \(start).")
      }
      try ResourceID.validateSizeAndReservation(id, allowsNumber: !segments.count.isMultiple(of: 2))
      segments.append(id)
    }
    return ResourcePath(segments)
  }

  /// Checks that the name ends here.
  func finish() throws(FirestoreError) {
    if index != end {
      throw .invalidArgument("\(kind) \"\(name.echoed)\" has extra text at index \(index).")
    }
  }

  /// Checks the length of the name and the depth of its path.
  func checkLimits(of path: ResourcePath) throws(FirestoreError) {
    if end > Limits.documentNameBytes {
      throw .invalidArgument("\(kind) is longer than \(Limits.documentNameBytes) bytes.")
    }
    if path.count > Limits.collectionDepth * 2 {
      throw .invalidArgument("\(kind) has more than \(Limits.collectionDepth) levels of collections.")
    }
  }

  private mutating func literal(_ text: StaticString) throws(FirestoreError) {
    let start = index
    let word = nextWord()
    let isExpected = withBytes { bytes in
      text.withUTF8Buffer { UnsafeBufferPointer(rebasing: bytes[word]).elementsEqual($0) }
    }
    guard isExpected else {
      throw .invalidArgument("\(kind) \"\(name.echoed)\" lacks \"\(text)\" at index \(start).")
    }
  }

  private mutating func slash() throws(FirestoreError) {
    guard index != end, withBytes({ $0[index] }) == 0x2F else {
      throw .invalidArgument("\(kind) \"\(name.echoed)\" lacks \"/\" at index \(index).")
    }
    index += 1
  }

  private mutating func segment() throws(FirestoreError) -> String {
    let start = index
    let word = nextWord()
    if word.isEmpty {
      throw .invalidArgument("\(kind) \"\(name.echoed)\" contains an empty resource id at index \(start).")
    }
    return withBytes { String(decoding: UnsafeBufferPointer(rebasing: $0[word]), as: UTF8.self) }
  }

  /// The bytes up to the next slash, or to the end. In UTF-8 the byte of a slash is never part of another character.
  private mutating func nextWord() -> Range<Int> {
    let start = index
    index = withBytes { bytes in
      var index = start
      while index < bytes.count, bytes[index] != 0x2F { index += 1 }
      return index
    }
    return start..<index
  }

  @inline(__always)
  private func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    // The initialiser made the string contiguous, so the copy never happens.
    name.utf8.withContiguousStorageIfAvailable(body) ?? Array(name.utf8).withUnsafeBufferPointer(body)
  }
}
