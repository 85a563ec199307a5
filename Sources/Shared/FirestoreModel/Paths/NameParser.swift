// Reads full resource names, with the product's messages for what is wrong and where.
//
// Invariant: what it returns needs no further check, except for the parity of the path.

/// A cursor over a full resource name.
struct NameParser {
  private let name: String
  private let kind: String
  private var index: String.UTF8View.Index

  init(_ name: String, kind: String) {
    self.name = name
    self.kind = kind
    index = name.utf8.startIndex
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
    while index != name.utf8.endIndex {
      try slash()
      let start = index
      let id = try segment()
      if id == "." || id == ".." {
        throw .invalidArgument(
          "\(kind) \"\(name)\" contains a resource id \"\(id)\" at index \(offset(start)).")
      }
      try ResourceID.validateSizeAndReservation(id, allowsNumber: !segments.count.isMultiple(of: 2))
      segments.append(id)
    }
    return ResourcePath(segments)
  }

  /// Demands that nothing follows.
  func end() throws(FirestoreError) {
    if index != name.utf8.endIndex {
      throw .invalidArgument("\(kind) \"\(name)\" has extra text at index \(offset(index)).")
    }
  }

  /// Checks the length of the name and the depth of its path.
  func checkLimits(of path: ResourcePath) throws(FirestoreError) {
    if name.utf8.count > Limits.documentNameBytes {
      throw .invalidArgument("\(kind) is longer than \(Limits.documentNameBytes) bytes.")
    }
    if path.count > Limits.collectionDepth * 2 {
      throw .invalidArgument("\(kind) has more than \(Limits.collectionDepth) levels of collections.")
    }
  }

  private mutating func literal(_ text: StaticString) throws(FirestoreError) {
    let start = index
    let word = nextWord()
    guard word.utf8.elementsEqual("\(text)".utf8) else {
      throw .invalidArgument("\(kind) \"\(name)\" lacks \"\(text)\" at index \(offset(start)).")
    }
  }

  private mutating func slash() throws(FirestoreError) {
    guard index != name.utf8.endIndex, name.utf8[index] == 0x2F else {
      throw .invalidArgument("\(kind) \"\(name)\" lacks \"/\" at index \(offset(index)).")
    }
    index = name.utf8.index(after: index)
  }

  private mutating func segment() throws(FirestoreError) -> String {
    let start = index
    let word = nextWord()
    if word.isEmpty {
      throw .invalidArgument("\(kind) \"\(name)\" contains an empty resource id at index \(offset(start)).")
    }
    return String(word)
  }

  private mutating func nextWord() -> Substring {
    let start = index
    index = name.utf8[start...].firstIndex(of: 0x2F) ?? name.utf8.endIndex
    return name[start..<index]
  }

  private func offset(_ position: String.UTF8View.Index) -> Int {
    name.utf8.distance(from: name.utf8.startIndex, to: position)
  }
}
