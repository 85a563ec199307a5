// The index assembly reads the project's index files and sets their indexes on the Firestore engine. It runs
// at the start and on every reload.

import FirestoreEngine
import FirestoreModel
import Logging

extension HearthConfiguration {
  /// Reads the index files.
  /// - Returns: the index configuration of each database.
  /// - Throws: ``HearthError`` for the first file that cannot be read or is invalid.
  func readIndexes(log: Logger) throws(HearthError) -> [(
    database: String, indexes: DatabaseIndexConfiguration
  )] {
    var all: [(database: String, indexes: DatabaseIndexConfiguration)] = []
    for file in indexFiles {
      let bytes: [UInt8]?
      do {
        bytes = try ConfigurationFile.read(file.path)
      } catch {
        throw HearthError("The index file \(file.path) cannot be read: \(error)")
      }
      guard let bytes else {
        throw HearthError("The index file \(file.path), which firebase.json names, does not exist.")
      }
      let parsed = try IndexesJSON(
        bytes, path: file.path, dimensions: limits.firestore.data.vectorDimensions)
      for warning in parsed.warnings { log.warning("\(warning)") }
      all.append((file.database, parsed.configuration))
    }
    return all
  }
}

extension FirestoreEngine {
  /// Checks the indexes of all databases.
  func validate(_ configurations: [(database: String, indexes: DatabaseIndexConfiguration)])
    throws(HearthError)
  {
    for (database, indexes) in configurations {
      do {
        try validate(indexes, ofDatabase: database)
      } catch {
        throw HearthError("The indexes of the database \(database) cannot be set: \(error.message)")
      }
    }
  }

  /// Sets the indexes of all databases. An invalid index configuration changes none of them. If the store
  /// fails, some databases keep their old indexes, and the error lists the databases that were set.
  func setIndexes(_ configurations: [(database: String, indexes: DatabaseIndexConfiguration)])
    async throws(HearthError)
  {
    try validate(configurations)
    var completed: [String] = []
    for (database, indexes) in configurations {
      do {
        try await setIndexes(indexes, ofDatabase: database)
      } catch {
        let others = completed.isEmpty ? "" : ", those of \(completed.joined(separator: ", ")) before it were"
        throw HearthError(
          "The indexes of the database \(database) could not be set everywhere\(others): \(error.message)")
      }
      completed.append(database)
    }
  }
}
