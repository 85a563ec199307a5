// The umbrella beside a product's own import: what both offer must not be ambiguous.

import Firebase
import FirebaseFirestore
import Foundation
import Testing

@Suite struct BothImportsTests {
  @Test func aCodeIsMatchedWhereBothAreImported() {
    let error: any Error = NSError(domain: FirestoreErrorDomain, code: 5)
    do { throw error } catch FirestoreErrorCode.notFound {} catch { Issue.record("no match") }
  }
}
