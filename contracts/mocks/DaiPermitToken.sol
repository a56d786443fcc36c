// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";

/// @title A token for local chains with the permit of DAI, by which a spender gets an unlimited allowance or none.
/// @notice It also has the permit of EIP-2612 with a signature in bytes, which accounts with code can give; both use the same nonces.
contract DaiPermitToken is ERC20 {
    error InvalidPermit(address holder);

    bytes32 public constant PERMIT_TYPEHASH = keccak256(
        "Permit(address holder,address spender,uint256 nonce,uint256 expiry,bool allowed)"
    );
    bytes32 private constant BYTES_PERMIT_TYPEHASH = keccak256(
        "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"
    );
    bytes32 private constant DOMAIN_TYPEHASH = keccak256(
        "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
    );
    string public constant version = "1";

    mapping(address holder => uint256) public nonces;

    constructor() ERC20("Dai Stablecoin", "DAI") {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        bytes32 versionHash = keccak256(bytes(version));
        return
            keccak256(abi.encode(DOMAIN_TYPEHASH, keccak256(bytes(name())), versionHash, block.chainid, address(this)));
    }

    function permit(
        address holder,
        address spender,
        uint256 nonce,
        uint256 expiry,
        bool allowed,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        bytes32 structHash = keccak256(abi.encode(PERMIT_TYPEHASH, holder, spender, nonce, expiry, allowed));
        bool inTime = expiry == 0 || block.timestamp <= expiry;
        bool signed = holder != address(0) && ecrecover(_digest(structHash), v, r, s) == holder;
        if (!inTime || !signed || nonce != nonces[holder]++) revert InvalidPermit(holder);
        _approve(holder, spender, allowed ? type(uint256).max : 0);
    }

    function permit(
        address owner,
        address spender,
        uint256 value,
        uint256 deadline,
        bytes calldata signature
    ) external {
        bytes32 structHash = keccak256(
            abi.encode(BYTES_PERMIT_TYPEHASH, owner, spender, value, nonces[owner]++, deadline)
        );
        bool signed = SignatureChecker.isValidSignatureNow(owner, _digest(structHash), signature);
        if (!signed || block.timestamp > deadline) revert InvalidPermit(owner);
        _approve(owner, spender, value);
    }

    function _digest(bytes32 structHash) private view returns (bytes32) {
        return keccak256(abi.encodePacked(hex"1901", DOMAIN_SEPARATOR(), structHash));
    }
}
