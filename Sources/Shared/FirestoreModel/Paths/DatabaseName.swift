// The full name of a database: its project and its id within the project.

/// `projects/{project}/databases/{database}`.
public struct DatabaseName: Sendable {
  /// The project's id.
  public let project: String
  /// The database's id within the project; `(default)` by default.
  public let database: String

  /// The id of a project's default database.
  public static let defaultDatabase = "(default)"

  /// Makes a name of its parts without validating them.
  public init(project: String, database: String = DatabaseName.defaultDatabase) {
    self.project = project
    self.database = database
  }

  /// Parses `projects/{project}/databases/{database}`.
  ///
  /// - Throws: INVALID_ARGUMENT if the name is malformed.
  public init(parsing name: String) throws(FirestoreError) {
    var parser = NameParser(name, kind: "Database name")
    self = try parser.database()
    try parser.finish()
  }

  /// Compares by project, then database.
  public static func compare(_ a: DatabaseName, _ b: DatabaseName) -> ComparisonOrder {
    let project = ComparisonOrder.compare(utf8: a.project, b.project)
    return project != .same ? project : ComparisonOrder.compare(utf8: a.database, b.database)
  }
}

extension DatabaseName: Hashable, CustomStringConvertible {
  /// Whether both parts have the same bytes.
  public static func == (a: DatabaseName, b: DatabaseName) -> Bool {
    a.database.hasSameUTF8(as: b.database) && a.project.hasSameUTF8(as: b.project)
  }

  /// Hashes what `==` compares.
  public func hash(into hasher: inout Hasher) {
    project.hashUTF8(into: &hasher)
    database.hashUTF8(into: &hasher)
  }

  /// The full name.
  public var description: String { "projects/\(project)/databases/\(database)" }
}
