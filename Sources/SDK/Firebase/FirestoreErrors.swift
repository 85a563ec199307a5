// Matching errors against Firestore's codes for files that import `Firebase` alone: an operator cannot be
// exported by name, so this module has one of its own, which gives way where FirebaseFirestore's is seen too.

import Foundation

extension FirestoreErrorCode.Code {
  /// Lets `switch` and `catch` match a code against any error.
  @_disfavoredOverload
  public static func ~= (match: FirestoreErrorCode.Code, error: any Error) -> Bool {
    let object = error as NSError
    return object.domain == FirestoreErrorDomain && object.code == match.rawValue
  }
}
