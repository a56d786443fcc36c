// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

/// @title An account with code, for tests: a contract that a key controls, or what an EIP-7702 account delegates to.
/// @notice Its signatures carry one byte in front of the key's, so that no other account takes them for its own.
contract SmartAccount is IERC1271 {
    bytes1 private constant MARK = 0x01;

    address private immutable SIGNER;

    /// @param signer Whose signatures count; zero for those of the account itself.
    constructor(address signer) {
        SIGNER = signer;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        if (signature.length != 66 || signature[0] != MARK) return 0xffffffff;
        return ECDSA.recover(hash, signature[1:]) == _signer() ? this.isValidSignature.selector : bytes4(0xffffffff);
    }

    /// @notice Calls `target` for the key that controls the account.
    function execute(address target, bytes calldata data) external {
        require(msg.sender == _signer(), "not the signer");
        (bool done, ) = target.call(data);
        require(done, "the call failed");
    }

    function _signer() private view returns (address) {
        return SIGNER == address(0) ? address(this) : SIGNER;
    }
}
