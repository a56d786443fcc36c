// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

/// @title An account with code, for tests: a contract that a key controls, or the code that an EIP-7702 account delegates to.
/// @notice Its signatures have one byte in front of the key's own, so that they are valid for this kind of account only.
contract SmartAccount is IERC1271 {
    bytes1 private constant MARK = 0x01;

    address private immutable SIGNER;

    /// @param signer Whose signatures are valid; zero for the account's own key.
    constructor(address signer) {
        SIGNER = signer;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        if (signature.length != 66 || signature[0] != MARK) return 0xffffffff;
        return ECDSA.recover(hash, signature[1:]) == _signer() ? this.isValidSignature.selector : bytes4(0xffffffff);
    }

    /// @notice Calls `target` with `data`. Only the key that controls the account may call this.
    function execute(address target, bytes calldata data) external {
        require(msg.sender == _signer(), "not the signer");
        (bool done, ) = target.call(data);
        require(done, "the call failed");
    }

    function _signer() private view returns (address) {
        return SIGNER == address(0) ? address(this) : SIGNER;
    }
}
